#include "front/claim.h"

#include <string.h>

#include "base/watch_claim.h"
#include "front/atomics.h"
#include "front/loader.h"
#include "front/message.h"
#include "front/route.h"

namespace falcon::front {
namespace {

/// Who watches; null: nobody does yet. Of a libnccl.so.2 what gives the core in it, of libnccl-falcon-core.so this
/// mark.
Atomic<const void*> watcher;
const void* const core = &watcher;

/// A library of ours that calls the vendor's through us.
struct HandingOver {
  Atomic<const void*> base;  ///< where it is loaded; null: nobody
  Atomic<void*> function;    ///< of the vendor's
};
constexpr int mostHandingOver = 8;  // copies of libnccl.so.2
HandingOver handingOver[mostHandingOver];

}  // namespace

bool claimForCore() {
  return watcher.replace(nullptr, core) || watcher.load() == core;
}

void letGoOfClaim() {
  watcher.replace(core, nullptr);
}

const CoreFunctions* coreOfLibrary() {
  const auto get = reinterpret_cast<watch_claim::GetCore>(const_cast<void*>(watcher.load()));
  if (const void* const made = get ? get(FALCON_BUILD) : nullptr) return static_cast<const CoreFunctions*>(made);
  say("NCCL Falcon's libnccl.so.2 watches in this process already, and is of another build than libnccl-falcon.so: "
      "communicators that are made past it are not watched; use both of one build, or only one of them "
      "(docs/drop-in.md)");
  return nullptr;
}

void* handedOverBy(const void* base) {
  for (const HandingOver& each : handingOver)
    if (base && each.base.load() == base) return each.function.load();
  return nullptr;
}

}  // namespace falcon::front

using namespace falcon;

extern "C" __attribute__((visibility("default"))) watch_claim::Answer ncclFalconClaimWatch(
    const char* build, watch_claim::GetCore getCore) {
  const auto* const who = reinterpret_cast<const void*>(getCore);
  if (front::watcher.replace(nullptr, who) || front::watcher.load() == who) return watch_claim::Answer::yours;
  const bool isOfThisBuild = strcmp(build, FALCON_BUILD) == 0 && front::watcher.load() == front::core;
  return isOfThisBuild ? watch_claim::Answer::handOver : watch_claim::Answer::others;
}

extern "C" __attribute__((visibility("default"))) bool ncclFalconHandOver(const void* code, void* vendorsFunction) {
  const void* const base = front::baseOf(code);
  for (auto& each : front::handingOver) {
    if (!base || (!each.base.replace(nullptr, base) && each.base.load() != base)) continue;
    each.function.store(vendorsFunction);
    return true;
  }
  return false;
}
