// The functions of nccl.h and nccl_falcon.h that the module calls, of the library that lies in the package.
#pragma once

#include <string>

#include "nccl_falcon.h"

namespace falcon::python {

// clang-format off
#define FALCON_PYTHON_FUNCTIONS(X)                                                                          \
  X(ncclGetVersion) X(ncclGetErrorString) X(ncclGetLastError) X(ncclFalconGetHostUniqueId)                  \
  X(ncclCommInitRank) X(ncclCommDestroy) X(ncclCommAbort) X(ncclCommRevoke) X(ncclCommGetAsyncError) X(ncclGroupStart) X(ncclGroupEnd)                \
  X(ncclAllReduce) X(ncclBroadcast) X(ncclReduce) X(ncclAllGather) X(ncclReduceScatter) X(ncclAlltoAll)     \
  X(ncclGather) X(ncclScatter) X(ncclSend) X(ncclRecv) X(ncclRedOpCreatePreMulSum) X(ncclRedOpDestroy)      \
  X(ncclFalconGetVersion) X(ncclFalconStreamCreate) X(ncclFalconStreamDestroy) X(ncclFalconStreamCallback)  \
  X(ncclFalconRedOpCreateBitwise) X(ncclFalconRegisterLayout) X(ncclFalconIterationBegin)                   \
  X(ncclFalconRangeBegin) X(ncclFalconRangeEnd) X(ncclFalconIterationWork)                                  \
  X(ncclFalconSuspend) X(ncclFalconResume)                                                                  \
  X(ncclFalconRegisterState) X(ncclFalconUnregisterState) X(ncclFalconCheckpoint)                           \
  X(ncclFalconCheckpointSynchronize) X(ncclFalconRestore) X(ncclFalconWanted) X(ncclFalconRestart)          \
  X(ncclCommUserRank) X(ncclFalconRegisterReshape) X(ncclFalconReshape) X(ncclFalconRoles)           \
  X(ncclFalconIterationCallback)
// clang-format on

struct Library {
#define FALCON_MEMBER(name) decltype(&::name) name;
  FALCON_PYTHON_FUNCTIONS(FALCON_MEMBER)
#undef FALCON_MEMBER
};

/// Opened by its path at the first call and never closed: PyTorch brings a libnccl.so.2 of the vendor's, and neither
/// may take the other's place. Throws std::runtime_error that names the path and what is wrong with it.
const Library& library();
/// Where it lies.
std::string libraryPath();

/// What went wrong in the call that gave `result` on this thread, in the library's words.
std::string textOf(ncclResult_t result);

}  // namespace falcon::python
