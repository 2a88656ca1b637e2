#include "gpu/vendor_library.h"

#include <dlfcn.h>
#include <sys/stat.h>

#include <cstdlib>
#include <filesystem>

#include "base/log.h"
#include "base/log_file.h"
#include "base/own_files.h"
#include "base/shared_library.h"
#include "base/watch_claim.h"
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

/// The first name that is missing, or null. The p-names, so that a profiler between us and the vendor sees a call once;
/// before them, by their usual names, those of `preload`.
const char* fill(VendorFunctions& table, void* library, void* preload) {
  const auto find = [&](const char* name, auto& function) {
    return (preload && findFunction(preload, name + 1, function)) || findFunction(library, name, function);
  };
#define FALCON_FIND(member, name) \
  if (!find(name, table.member)) return name
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
  find("pncclMemAlloc", table.memAlloc);
  find("pncclMemFree", table.memFree);
  find("pncclCommRegister", table.commRegister);
  find("pncclCommDeregister", table.commDeregister);
  find("pncclCommWindowRegister", table.commWindowRegister);
  find("pncclCommWindowDeregister", table.commWindowDeregister);
  find("pncclGroupSimulateEnd", table.groupSimulateEnd);
  find("pncclCommShrink", table.commShrink);
  find("pncclCommRevoke", table.commRevoke);
  find("pncclCommGrow", table.commGrow);
  find("pncclCommGetUniqueId", table.commGetUniqueId);
  find("pncclWinGetUserPtr", table.winGetUserPtr);
  find("pncclAlltoAll", table.allToAll);
  find("pncclGather", table.gather);
  find("pncclScatter", table.scatter);
  return nullptr;
}

/// The preload library takes our calls for those of an application that is linked to the vendor's, if it can.
bool handOver(void* preload, void* library) {
  watch_claim::HandOver tell = nullptr;
  return preload && findFunction(preload, watch_claim::handOverName, tell) &&
         tell(reinterpret_cast<const void*>(&handOver), dlsym(library, "pncclGetVersion"));
}

Result<std::shared_ptr<const VendorLibrary>> open(const std::string& path, void* preload) {
  if (path.empty() || path[0] != '/') return Error::invalidUsage("'{}' is not an absolute path", path);
  FileIdentity file;
  if (!identify(path.c_str(), file)) return Error::invalidUsage("{} does not exist", path);
  if (std::error_code error; !std::filesystem::is_regular_file(path, error))
    return Error::invalidUsage("{} is no file", path);
  if (isThisLibrary(path)) return Error::invalidUsage("{} is NCCL Falcon itself", path);
  // Not bound to itself (RTLD_DEEPBIND): it is to have the program's allocator. What it calls of its own exports comes
  // to us, and is told (vendor_code.h). Never closed: NCCL keeps threads.
  void* library = dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (!library) return Error::invalidUsage("{} cannot be loaded: {}", path, dlerror());
  if (dlsym(library, "ncclFalconGetVersion")) return Error::invalidUsage("{} is a copy of NCCL Falcon", path);

  auto loaded = std::make_shared<VendorLibrary>();
  loaded->path = path;
  loaded->handle = library;
  loaded->preload = handOver(preload, library) ? preload : nullptr;
  if (const char* missing = fill(loaded->functions, library, loaded->preload))
    return Error::invalidUsage("{} has no {}", path, missing);
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

Result<std::shared_ptr<const VendorLibrary>> loadVendorLibrary(const std::string& path, void* preload) {
  if (!path.empty()) return open(path, preload);
  std::string tried;
  for (const Candidate& candidate : vendorCandidates()) {
    auto library = open(candidate.path, preload);
    if (library) return library;
    tried += (tried.empty() ? "" : "; ") + library.error().message();
  }
  return Error::invalidUsage("no vendor libnccl.so.2 was found (set NCCL_FALCON_VENDOR_LIBRARY to its path){}{}",
                             tried.empty() ? "" : ": ", tried);
}

}  // namespace falcon::gpu
