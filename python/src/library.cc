#include "library.h"

#include <dlfcn.h>

#include <stdexcept>

namespace falcon::python {
namespace {

Library open() {
  const std::string path = libraryPath();
  void* const handle = dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (!handle)
    throw std::runtime_error("nccl_falcon: its library cannot be loaded: " + std::string(dlerror()) +
                             "; install the package again");
  Library found{};
#define FALCON_FIND(name)                                                 \
  found.name = reinterpret_cast<decltype(&::name)>(dlsym(handle, #name)); \
  if (!found.name)                                                        \
    throw std::runtime_error("nccl_falcon: " + path + " has no " #name ": it is not the library of this package");
  FALCON_PYTHON_FUNCTIONS(FALCON_FIND)
#undef FALCON_FIND
  return found;
}

}  // namespace

std::string libraryPath() {
  Dl_info self{};
  if (!dladdr(reinterpret_cast<const void*>(&libraryPath), &self) || !self.dli_fname)
    throw std::runtime_error("nccl_falcon: the module does not know where it lies");
  const std::string file = self.dli_fname;
  return file.substr(0, file.rfind('/') + 1) + "lib/libnccl.so.2";
}

const Library& library() {
  static const Library opened = open();
  return opened;
}

std::string textOf(ncclResult_t result) {
  const char* const text = library().ncclGetLastError(nullptr);
  return text && *text ? text : library().ncclGetErrorString(result);
}

}  // namespace falcon::python
