// The functions of NCCL, as the vendor's binaries export them (tests/abi/vendor/names.txt), and ours beyond them.
#pragma once

#include <fstream>
#include <stdexcept>
#include <string>
#include <vector>

namespace falcon::abi {

struct VendorFunction {
  std::string name;   ///< "ncclAllReduce"
  std::string since;  ///< the first of the releases looked at that has it
};

/// All that the newest release exports, but for their twins.
inline std::vector<VendorFunction> vendorFunctions() {
  std::ifstream file(FALCON_VENDOR_FACTS "/names.txt");
  std::vector<VendorFunction> functions;
  for (VendorFunction function; file >> function.name >> function.since;) functions.push_back(function);
  if (functions.empty()) throw std::runtime_error(FALCON_VENDOR_FACTS "/names.txt cannot be read");
  return functions;
}

/// The one function of the vendor's that has no twin, and is in no header.
inline constexpr const char* withoutTwin = "ncclResetDebugInitInternal";

inline constexpr const char* falconFunctionNames[] = {"ncclFalconGetVersion",
                                                      "ncclFalconRegisterLayout",
                                                      "ncclFalconIterationBegin",
                                                      "ncclFalconStreamCreate",
                                                      "ncclFalconStreamSynchronize",
                                                      "ncclFalconStreamQuery",
                                                      "ncclFalconStreamDestroy",
                                                      "ncclFalconRangeBegin",
                                                      "ncclFalconRangeEnd",
                                                      "ncclFalconSuspend",
                                                      "ncclFalconResume",
                                                      "ncclFalconTrapCallbackAdd",
                                                      "ncclFalconTrapCallbackRemove",
                                                      "ncclFalconIterationWork",
                                                      "ncclFalconRegisterState",
                                                      "ncclFalconUnregisterState",
                                                      "ncclFalconCheckpoint",
                                                      "ncclFalconCheckpointSynchronize",
                                                      "ncclFalconRestore",
                                                      "ncclFalconWanted",
                                                      "ncclFalconRestart",
                                                      "ncclFalconRegisterReshape",
                                                      "ncclFalconReshape",
                                                      "ncclFalconRole",
                                                      "ncclFalconRoles",
                                                      "ncclFalconIterationCallback",
                                                      "ncclFalconStreamCallback",
                                                      "ncclFalconRedOpCreateBitwise",
                                                      "ncclFalconGetHostUniqueId"};

}  // namespace falcon::abi
