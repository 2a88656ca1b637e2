// Functions of libraries that are opened at run time.
#pragma once

#include <dlfcn.h>

namespace falcon {

/// Sets `function` to what `library` (of dlopen) has under that name; false, and null, where there is none.
template <class Function>
bool findFunction(void* library, const char* name, Function& function) {
  function = reinterpret_cast<Function>(dlsym(library, name));
  return function != nullptr;
}

}  // namespace falcon
