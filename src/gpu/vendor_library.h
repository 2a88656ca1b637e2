// The vendor's NCCL as a table of functions, so that tests hand in tables of their own.
#pragma once

#include <memory>
#include <string>

#include "base/result.h"
#include "base/shared_library.h"
#include "nccl.h"

namespace falcon::gpu {

/// What the GPU engine calls. A library that lacks one of the first part is refused; those of the second part, which
/// came later, may be null.
struct VendorFunctions {
  decltype(&::ncclGetVersion) getVersion = nullptr;
  decltype(&::ncclGetErrorString) getErrorString = nullptr;
  decltype(&::ncclGetLastError) getLastError = nullptr;
  decltype(&::ncclGetUniqueId) getUniqueId = nullptr;
  decltype(&::ncclCommInitRankConfig) commInitRankConfig = nullptr;
  decltype(&::ncclCommSplit) commSplit = nullptr;
  decltype(&::ncclCommFinalize) commFinalize = nullptr;
  decltype(&::ncclCommDestroy) commDestroy = nullptr;
  decltype(&::ncclCommAbort) commAbort = nullptr;
  decltype(&::ncclCommGetAsyncError) commGetAsyncError = nullptr;
  decltype(&::ncclCommCount) commCount = nullptr;
  decltype(&::ncclCommUserRank) commUserRank = nullptr;
  decltype(&::ncclCommCuDevice) commCuDevice = nullptr;
  decltype(&::ncclAllReduce) allReduce = nullptr;
  decltype(&::ncclBroadcast) broadcast = nullptr;
  decltype(&::ncclReduce) reduce = nullptr;
  decltype(&::ncclAllGather) allGather = nullptr;
  decltype(&::ncclReduceScatter) reduceScatter = nullptr;
  decltype(&::ncclSend) send = nullptr;
  decltype(&::ncclRecv) receive = nullptr;
  decltype(&::ncclRedOpCreatePreMulSum) redOpCreatePreMulSum = nullptr;
  decltype(&::ncclRedOpDestroy) redOpDestroy = nullptr;
  decltype(&::ncclGroupStart) groupStart = nullptr;
  decltype(&::ncclGroupEnd) groupEnd = nullptr;

  decltype(&::ncclMemAlloc) memAlloc = nullptr;
  decltype(&::ncclMemFree) memFree = nullptr;
  decltype(&::ncclCommRegister) commRegister = nullptr;
  decltype(&::ncclCommDeregister) commDeregister = nullptr;
  decltype(&::ncclCommWindowRegister) commWindowRegister = nullptr;
  decltype(&::ncclCommWindowDeregister) commWindowDeregister = nullptr;
  decltype(&::ncclGroupSimulateEnd) groupSimulateEnd = nullptr;
  decltype(&::ncclCommShrink) commShrink = nullptr;
  decltype(&::ncclCommRevoke) commRevoke = nullptr;
  decltype(&::ncclCommGrow) commGrow = nullptr;
  decltype(&::ncclCommGetUniqueId) commGetUniqueId = nullptr;
  decltype(&::ncclWinGetUserPtr) winGetUserPtr = nullptr;
  decltype(&::ncclAlltoAll) allToAll = nullptr;
  decltype(&::ncclGather) gather = nullptr;
  decltype(&::ncclScatter) scatter = nullptr;
};

/// The vendor's library in this process. Shared by all communicators, used from any thread.
struct VendorLibrary {
  VendorFunctions functions;
  std::string path;
  int version = 0;
  void* handle = nullptr;   ///< of dlopen; null for a table of a test's own
  void* preload = nullptr;  ///< what stands before its functions; null: nothing does

  /// What the GPU engine only passes on: the function of that name ("ncclX"), or null where this library has none. By
  /// its p-name where it has one, so that a profiler between us and the vendor sees a call once.
  template <class Function>
  Function* find(const char* name) const {
    Function* function = nullptr;
    if (preload && findFunction(preload, name, function)) return function;
    if (handle && !findFunction(handle, fmt::format("p{}", name).c_str(), function))
      findFunction(handle, name, function);
    return function;
  }

  /// The error for a failed call, in the vendor's words. `communicator` may be null.
  Error error(ncclResult_t result, const char* function, ncclComm_t communicator) const;
  /// The error for a function that this library is too old for (invalidUsage).
  Error missing(const char* function) const;
  /// The same as a status; success stays success.
  Status status(ncclResult_t result, const char* function, ncclComm_t communicator) const {
    if (result == ncclSuccess) [[likely]]
      return {};
    return error(result, function, communicator);
  }
};

/// Loads `path`; with an empty one the first of vendorCandidates() that will do. Never loads this library itself, nor a
/// copy of it. Once loaded it stays: NCCL starts threads. Errors list what was tried, and are not logged. `preload`: a
/// library of ours whose functions are called in place of the vendor's, as it watches them and calls the vendor's then
/// (base/watch_claim.h); null: none.
Result<std::shared_ptr<const VendorLibrary>> loadVendorLibrary(const std::string& path, void* preload = nullptr);

}  // namespace falcon::gpu
