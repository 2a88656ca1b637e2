#include "front/claim.h"

#include <string.h>

#include "base/watch_claim.h"
#include "front/atomics.h"
#include "front/loader.h"
#include "front/message.h"
#include "front/route.h"

namespace falcon::front {
namespace {

constexpr int nobody = 0, core = 1, library = 2;
Atomic<int> watcher;
Atomic<const void*> handingOver;  // where it is loaded; written last
void* functionBehind;

}  // namespace

bool claimForCore() {
  if (watcher.replace(nobody, core) || watcher.load() == core) return true;
  say("NCCL Falcon's libnccl.so.2 watches in this process already: communicators that are made past it are not watched "
      "(docs/drop-in.md)");
  return false;
}

void* handedOverBy(const void* base) {
  return handingOver.load() == base && base ? functionBehind : nullptr;
}

}  // namespace falcon::front

using namespace falcon;

extern "C" __attribute__((visibility("default"))) watch_claim::Answer ncclFalconClaimWatch(const char* build) {
  if (front::watcher.replace(front::nobody, front::library) || front::watcher.load() == front::library)
    return watch_claim::Answer::yours;
  return strcmp(build, FALCON_BUILD) == 0 ? watch_claim::Answer::handOver : watch_claim::Answer::others;
}

extern "C" __attribute__((visibility("default"))) void ncclFalconHandOver(const void* code, void* vendorsFunction) {
  const void* const base = front::baseOf(code);
  if (!base || front::handingOver.load()) return;  // a process has one
  front::functionBehind = vendorsFunction;
  front::handingOver.store(base);
}
