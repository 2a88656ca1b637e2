#include "api/watcher.h"

#include "base/log.h"
#include "base/parameters.h"
#include "base/shared_library.h"
#include "base/watch_claim.h"

namespace falcon::api {
namespace {

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
  const Answer answer = bothAreThere ? claim(FALCON_BUILD) : Answer::yours;
  if (answer == Answer::yours) return {true, nullptr};
  void* const preload = answer == Answer::handOver ? libraryOf(reinterpret_cast<const void*>(claim)) : nullptr;
  if (preload)
    log::notice(
        "libnccl-falcon.so watches in this process already: what this libnccl.so.2 sends to the vendor's NCCL is "
        "watched there, and its communicators on host memory are not watched (docs/drop-in.md)");
  else
    log::notice(
        "libnccl-falcon.so watches in this process already, and is of another build: the communicators of this "
        "libnccl.so.2 are not watched; use both of one build, or only one of them (docs/drop-in.md)");
  return {false, preload};
}

}  // namespace falcon::api
