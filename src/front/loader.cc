#include "front/loader.h"

#include "front/atomics.h"

// This library goes into every child of a job, also into those that bring an older C library than the machine on which
// it was built. Until 2.33 the loader's functions were in libdl.so.2, and to name that here would cost every child 50
// us. Undefined and weak they cost nothing; where they are missing then, they are fetched at the first need.
#if defined(__x86_64__) && defined(__GLIBC__)
__asm__(".symver dladdr1,dladdr1@GLIBC_2.3.3");
__asm__(".symver dlclose,dlclose@GLIBC_2.2.5");
__asm__(".symver dlerror,dlerror@GLIBC_2.2.5");
__asm__(".symver dlinfo,dlinfo@GLIBC_2.3.3");
__asm__(".symver dlopen,dlopen@GLIBC_2.2.5");
__asm__(".symver dlsym,dlsym@GLIBC_2.2.5");
#endif
#pragma weak dladdr1
#pragma weak dlclose
#pragma weak dlerror
#pragma weak dlinfo
#pragma weak dlopen
#pragma weak dlsym

extern "C" {
// Of the C library itself until 2.33, for its own use.
// NOLINTBEGIN(bugprone-reserved-identifier)
__attribute__((weak)) void* __libc_dlopen_mode(const char* name, int mode);
__attribute__((weak)) void* __libc_dlsym(void* library, const char* name);
// NOLINTEND(bugprone-reserved-identifier)
}

namespace falcon::front {
namespace {

constexpr unsigned asDlopen = 0x80000000U;  // __RTLD_DLOPEN, which dlopen adds itself

constexpr Loader withoutAny{[](const char*, int) -> void* { return nullptr; },
                            [](void*, const char*) -> void* { return nullptr; },
                            [](void*) { return -1; },
                            []() -> char* { return nullptr; },
                            [](void*, int, void*) { return -1; },
                            [](const void*, Dl_info*, void**, int) { return 0; }};

template <class Function>
bool find(Function& function, void* library, const char* name) {
  function = reinterpret_cast<Function>(__libc_dlsym(library, name));
  return function != nullptr;
}

/// As it is without libdl.so.2 among what the program was started with.
bool fetch(Loader& made) {
  if (!__libc_dlopen_mode || !__libc_dlsym) return false;
  void* const library = __libc_dlopen_mode("libdl.so.2", static_cast<int>(RTLD_LAZY | asDlopen));
  return library && find(made.open, library, "dlopen") && find(made.symbol, library, "dlsym") &&
         find(made.close, library, "dlclose") && find(made.error, library, "dlerror") &&
         find(made.info, library, "dlinfo") && find(made.objectAt, library, "dladdr1");
}

Loader fetched;
Atomic<const Loader*> known;

}  // namespace

const Loader& loader() {
  static const Loader ofCLibrary{dlopen, dlsym, dlclose, dlerror, dlinfo, dladdr1};
  if (dlopen && dlsym && dlclose && dlerror && dlinfo && dladdr1) [[likely]]
    return ofCLibrary;
  if (const Loader* const found = known.load()) return *found;
  Loader made;
  if (!fetch(made)) return withoutAny;
  fetched = made;  // whoever else does this at the same time writes the same
  known.store(&fetched);
  return fetched;
}

}  // namespace falcon::front
