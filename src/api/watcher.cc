#include "api/watcher.h"

#include "base/log.h"
#include "base/parameters.h"
#include "base/shared_library.h"
#include "base/watch_claim.h"
#include "preload/core.h"

namespace falcon::api {
namespace {

const void* coreInside(const char* build) {
  return preload::coreFunctions(build);
}

void* libraryOf(const void* function) {
  Dl_info info;
  if (dladdr(function, &info) == 0 || !info.dli_fname) return nullptr;
  return dlopen(info.dli_fname, RTLD_LAZY | RTLD_NOLOAD);  // it stays until the process ends
}

}  // namespace

Watcher findWatcher() {
  using watch_claim::Answer;
  if (!parameters::falcon.value()) return {};
  watch_claim::Claim claim = nullptr;
  const bool bothAreThere = findFunction(RTLD_DEFAULT, watch_claim::claimName, claim);
  const Answer answer = bothAreThere ? claim(FALCON_BUILD, coreInside) : Answer::yours;
  if (answer == Answer::yours) return {true, nullptr};
  return {false, answer == Answer::handOver ? libraryOf(reinterpret_cast<const void*>(claim)) : nullptr};
}

void say(const Watcher& watcher) {
  if (!parameters::falcon.value())
    log::info("NCCL Falcon's detection is off; NCCL_FALCON=1 turns it on");
  else if (watcher.isThisLibrary)
    log::info("NCCL Falcon is active: it looks for slow ranks and links; NCCL_FALCON=0 turns it off");
  else if (watcher.preload)
    log::notice(
        "libnccl-falcon.so watches in this process already: what this libnccl.so.2 sends to the vendor's NCCL is "
        "watched there, and its communicators on host memory are not watched (docs/drop-in.md)");
  else
    log::notice(
        "NCCL Falcon watches in this process already, and is of another build, or another copy of this library: the "
        "communicators of this libnccl.so.2 are not watched; use only one of them (docs/drop-in.md)");
}

}  // namespace falcon::api
