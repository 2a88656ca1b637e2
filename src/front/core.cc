#include "front/core.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "front/atomics.h"
#include "front/claim.h"
#include "front/loader.h"
#include "front/message.h"

namespace falcon::front {
namespace {

bool isOn() {
  const char* const wanted = getenv("NCCL_FALCON");
  if (wanted && *wanted && strcmp(wanted, "0") != 0 && strcmp(wanted, "1") != 0)
    say("NCCL_FALCON is neither 0 nor 1, so it counts as 0 and nothing is watched; set it to 1");
  return wanted && strcmp(wanted, "1") == 0;
}

/// `name` beside this library; the folder is that of the time when it was loaded, by a relative path, perhaps.
bool pathBeside(const char* name, char* path, size_t size) {
  Dl_info self;
  void* map = nullptr;
  char folder[8192];  // twice what a path may have: a relative one stands behind the working folder
  if (loader().objectAt(reinterpret_cast<const void*>(&core), &self, &map, RTLD_DL_LINKMAP) == 0 || !map ||
      loader().info(map, RTLD_DI_ORIGIN, folder) != 0)
    return false;
  const int length = snprintf(path, size, "%s/%s", folder, name);
  return length > 0 && static_cast<size_t>(length) < size;
}

const CoreFunctions* load() {
  if (!isOn()) return nullptr;
  if (!claimForCore()) return coreOfLibrary();
  char path[4096];
  loader().error();  // of the application's, perhaps
  void* const library =
      pathBeside("libnccl-falcon-core.so", path, sizeof path) ? loader().open(path, RTLD_NOW | RTLD_LOCAL) : nullptr;
  if (!library) {
    const char* const reason = loader().error();
    sayOfCall("libnccl-falcon-core.so cannot be loaded from beside libnccl-falcon.so, so nothing is watched: %s",
              reason ? reason : "its path is too long");
    return nullptr;
  }
  const auto functions = reinterpret_cast<GetCoreFunctions>(loader().symbol(library, getCoreFunctionsName));
  const CoreFunctions* const made = functions ? functions(FALCON_BUILD) : nullptr;
  if (!made) say("libnccl-falcon-core.so is not of the same build as libnccl-falcon.so, so nothing is watched");
  return made;
}

constexpr CoreFunctions none{};  // that there is no core
Atomic<const CoreFunctions*> decided;
Atomic<int> loadedBy;  // the process

const CoreFunctions* decide(const CoreFunctions* made) {
  decided.replace(nullptr, made ? made : &none);
  const CoreFunctions* const its = decided.load();
  if (its != &none) return its;
  letGoOfClaim();
  return nullptr;
}

}  // namespace

const CoreFunctions* core() {
  if (const CoreFunctions* const known = decided.load()) return known == &none ? nullptr : known;
  const int here = getpid();
  if (!loadedBy.replace(0, here) && loadedBy.load() != here) return decide(nullptr);
  // Whoever comes meanwhile loads it as well: nobody waits but in the loader, which lets who calls from a library's
  // constructor in again.
  return decide(load());
}

}  // namespace falcon::front
