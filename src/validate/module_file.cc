#include "validate/module_file.h"

#include <dlfcn.h>
#include <unistd.h>

namespace falcon::validate {
namespace {

/// Where this code was loaded from, without the slash; "" where the loader does not say.
std::string ownFolder() {
  Dl_info self{};
  if (dladdr(reinterpret_cast<const void*>(&ownFolder), &self) == 0 || !self.dli_fname) return "";
  const std::string path = self.dli_fname;
  const auto slash = path.rfind('/');
  return slash == std::string::npos ? "" : path.substr(0, slash);
}

Error loaderError(const char* otherwise) {
  const char* reason = dlerror();
  return Error::system("{}", reason ? reason : otherwise);
}

}  // namespace

std::string modulePath(const char* fileName) {
  const std::string folder = ownFolder();
  const std::string beside = folder + "/" + fileName;
  const std::string inLib = folder + "/../lib/" + fileName;  // for programs that contain this code, such as tests
  return access(beside.c_str(), R_OK) != 0 && access(inLib.c_str(), R_OK) == 0 ? inLib : beside;
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

}  // namespace falcon::validate
