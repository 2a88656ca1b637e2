#include "base/module_file.h"

#include <dlfcn.h>

#include "base/own_files.h"

namespace falcon {
namespace {

Error loaderError(const char* otherwise) {
  const char* reason = dlerror();
  return Error::system("{}", reason ? reason : otherwise);
}

}  // namespace

std::string modulePath(const char* fileName) {
  return ownLibrary(fileName).value_or(ownFolder() + "/" + fileName);
}

Result<void*> openModule(const std::string& path) {
  void* library = dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (!library) return loaderError("the module cannot be opened");
  return library;
}

Result<void*> symbolOfModule(const std::string& path, const char* symbol) {
  const auto library = openModule(path);
  if (!library) return library.error();
  void* found = dlsym(*library, symbol);
  if (!found) return loaderError("the module lacks its entry");
  return found;
}

}  // namespace falcon
