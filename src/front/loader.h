// The loader's functions, in programs of any C library that NCCL runs with.
#pragma once

#include <dlfcn.h>

namespace falcon::front {

/// They do what the manual says. Where a program lacks them altogether, which none that has loaded NCCL does, nothing
/// is found.
struct Loader {
  void* (*open)(const char* name, int mode);
  void* (*symbol)(void* library, const char* name);
  int (*close)(void* library);
  char* (*error)();
  int (*info)(void* library, int what, void* result);
  int (*objectAt)(const void* address, Dl_info* info, void** more, int what);
};

/// Safe in any thread and in a forked child.
const Loader& loader();

}  // namespace falcon::front
