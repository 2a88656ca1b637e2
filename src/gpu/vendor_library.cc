#include "gpu/vendor_library.h"

#include <dlfcn.h>
#include <sys/stat.h>

#include <cstdlib>

#include "base/log.h"
#include "base/log_file.h"
#include "base/own_files.h"
#include "base/shared_library.h"
#include "gpu/vendor_candidates.h"
#include "gpu/vendor_code.h"

namespace falcon::gpu {
namespace {

constexpr int oldestVersion = 21800;  // the first with CommSplit and the config's current head

struct FileIdentity {
  dev_t device = 0;
  ino_t inode = 0;
  bool operator==(const FileIdentity&) const = default;
};

bool identify(const char* path, FileIdentity& identity) {
  struct stat status {};
  if (stat(path, &status) != 0) return false;
  identity = {status.st_dev, status.st_ino};
  return true;
}

bool isThisLibrary(const std::string& path) {
  FileIdentity own, other;
  return identify(ownFile().c_str(), own) && identify(path.c_str(), other) && own == other;
}

/// The first name that is missing, or null. The p-names, so that a profiler between us and the vendor sees a call once.
const char* fill(VendorFunctions& table, void* library) {
#define FALCON_FIND(member, name) \
  if (!findFunction(library, name, table.member)) return name
  FALCON_FIND(getVersion, "pncclGetVersion");
  FALCON_FIND(getErrorString, "pncclGetErrorString");
  FALCON_FIND(getLastError, "pncclGetLastError");
  FALCON_FIND(getUniqueId, "pncclGetUniqueId");
  FALCON_FIND(commInitRankConfig, "pncclCommInitRankConfig");
  FALCON_FIND(commSplit, "pncclCommSplit");
  FALCON_FIND(commFinalize, "pncclCommFinalize");
  FALCON_FIND(commDestroy, "pncclCommDestroy");
  FALCON_FIND(commAbort, "pncclCommAbort");
  FALCON_FIND(commGetAsyncError, "pncclCommGetAsyncError");
  FALCON_FIND(commCount, "pncclCommCount");
  FALCON_FIND(commUserRank, "pncclCommUserRank");
  FALCON_FIND(commCuDevice, "pncclCommCuDevice");
  FALCON_FIND(allReduce, "pncclAllReduce");
  FALCON_FIND(broadcast, "pncclBroadcast");
  FALCON_FIND(reduce, "pncclReduce");
  FALCON_FIND(allGather, "pncclAllGather");
  FALCON_FIND(reduceScatter, "pncclReduceScatter");
  FALCON_FIND(send, "pncclSend");
  FALCON_FIND(receive, "pncclRecv");
  FALCON_FIND(redOpCreatePreMulSum, "pncclRedOpCreatePreMulSum");
  FALCON_FIND(redOpDestroy, "pncclRedOpDestroy");
  FALCON_FIND(groupStart, "pncclGroupStart");
  FALCON_FIND(groupEnd, "pncclGroupEnd");
#undef FALCON_FIND
  // Later than the oldest version.
  findFunction(library, "pncclMemAlloc", table.memAlloc);
  findFunction(library, "pncclMemFree", table.memFree);
  findFunction(library, "pncclCommRegister", table.commRegister);
  findFunction(library, "pncclCommDeregister", table.commDeregister);
  findFunction(library, "pncclCommWindowRegister", table.commWindowRegister);
  findFunction(library, "pncclCommWindowDeregister", table.commWindowDeregister);
  findFunction(library, "pncclGroupSimulateEnd", table.groupSimulateEnd);
  findFunction(library, "pncclCommShrink", table.commShrink);
  findFunction(library, "pncclCommRevoke", table.commRevoke);
  findFunction(library, "pncclCommGrow", table.commGrow);
  findFunction(library, "pncclCommGetUniqueId", table.commGetUniqueId);
  findFunction(library, "pncclWinGetUserPtr", table.winGetUserPtr);
  findFunction(library, "pncclAlltoAll", table.allToAll);
  findFunction(library, "pncclGather", table.gather);
  findFunction(library, "pncclScatter", table.scatter);
  return nullptr;
}

Result<std::shared_ptr<const VendorLibrary>> open(const std::string& path) {
  if (path.empty() || path[0] != '/') return Error::invalidUsage("'{}' is not an absolute path", path);
  FileIdentity file;
  if (!identify(path.c_str(), file)) return Error::invalidUsage("{} does not exist", path);
  if (isThisLibrary(path)) return Error::invalidUsage("{} is NCCL Falcon itself", path);
  // Not bound to itself (RTLD_DEEPBIND): it is to have the program's allocator. What it calls of its own exports comes
  // to us, and is told (vendor_code.h). Never closed: NCCL keeps threads.
  void* library = dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (!library) return Error::invalidUsage("{} cannot be loaded: {}", path, dlerror());
  if (dlsym(library, "ncclFalconGetVersion")) return Error::invalidUsage("{} is a copy of NCCL Falcon", path);

  auto loaded = std::make_shared<VendorLibrary>();
  loaded->path = path;
  loaded->handle = library;
  if (const char* missing = fill(loaded->functions, library)) return Error::invalidUsage("{} has no {}", path, missing);
  if (loaded->functions.getVersion(&loaded->version) != ncclSuccess || loaded->version < oldestVersion)
    return Error::invalidUsage("{} is version {}; {} or newer is needed", path, loaded->version, oldestVersion);
  tellCallsOf(*loaded);
  log::makeRoomForVendor();  // nothing was called that logs
  log::info("GPU engine: {} version {}", path, loaded->version);
  return std::shared_ptr<const VendorLibrary>(std::move(loaded));
}

}  // namespace

Error VendorLibrary::error(ncclResult_t result, const char* function, ncclComm_t communicator) const {
  const char* name = functions.getErrorString(result);
  const char* detail = functions.getLastError(communicator);
  return Error(static_cast<ErrorCode>(result), fmt::format("{} of {} failed: {}{}{}", function, path, name ? name : "?",
                                                           detail && *detail ? ": " : "", detail ? detail : ""));
}

Error VendorLibrary::missing(const char* function) const {
  return Error::invalidUsage("{} is not in {}, which is version {}", function, path, version);
}

Result<std::shared_ptr<const VendorLibrary>> loadVendorLibrary(const std::string& path) {
  if (!path.empty()) return open(path);
  std::string tried;
  for (const Candidate& candidate : vendorCandidates()) {
    auto library = open(candidate.path);
    if (library) return library;
    tried += (tried.empty() ? "" : "; ") + library.error().message();
  }
  return Error::invalidUsage("no vendor libnccl.so.2 was found (set NCCL_FALCON_VENDOR_LIBRARY to its path){}{}",
                             tried.empty() ? "" : ": ", tried);
}

}  // namespace falcon::gpu
