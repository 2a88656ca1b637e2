// The functions of NCCL 2.28.9, without their prefix.
#pragma once

namespace falcon::abi {

inline constexpr const char* functionNames[] = {
    "GetVersion", "GetUniqueId", "CommInitRank", "CommInitRankConfig", "CommInitRankScalable", "CommInitAll",
    "CommFinalize", "CommDestroy", "CommAbort", "CommRevoke", "CommSplit", "CommShrink", "CommGetAsyncError",
    "CommCount", "CommCuDevice", "CommUserRank", "MemAlloc", "MemFree", "CommRegister", "CommDeregister",
    "CommWindowRegister", "CommWindowDeregister", "GetErrorString", "GetLastError", "ResetDebugInit",
    "RedOpCreatePreMulSum", "RedOpDestroy", "Reduce", "Bcast", "Broadcast", "AllReduce", "ReduceScatter", "AllGather",
    "AlltoAll", "Gather", "Scatter", "Send", "Recv", "GroupStart", "GroupEnd", "GroupSimulateEnd",
    // for device code
    "DevCommCreate", "DevCommDestroy", "GinBarrierCreateRequirement", "LsaBarrierCreateRequirement", "LLA2ACalcSlots",
    "LLA2ACreateRequirement", "TeamWorld", "TeamLsa", "TeamRail", "TeamRankToWorld", "TeamRankToLsa"};
static_assert(sizeof functionNames / sizeof *functionNames == 52);

inline constexpr const char* falconFunctionNames[] = {
    "ncclFalconGetVersion",        "ncclFalconRegisterLayout", "ncclFalconIterationBegin", "ncclFalconStreamCreate",
    "ncclFalconStreamSynchronize", "ncclFalconStreamQuery",    "ncclFalconStreamDestroy",  "ncclFalconRangeBegin",
    "ncclFalconRangeEnd",          "ncclFalconSuspend",        "ncclFalconResume",         "ncclFalconTrapCallbackAdd",
    "ncclFalconTrapCallbackRemove"};

}  // namespace falcon::abi
