#include "validate/matrix_product.h"

#include <dlfcn.h>
#include <unistd.h>

#include <algorithm>

#include "base/log.h"
#include "base/per_process.h"
#include "validate/compute_module/compute_module.h"

namespace falcon::validate {
namespace {

constexpr const char* moduleName = "libnccl_falcon_compute.so";

void multiplyPlainly(int size, const float* a, const float* b, float* c) {
  std::fill(c, c + static_cast<std::ptrdiff_t>(size) * size, 0.0f);
  for (int row = 0; row < size; ++row) {
    for (int inner = 0; inner < size; ++inner) {
      const float factor = a[row * size + inner];
      for (int column = 0; column < size; ++column) c[row * size + column] += factor * b[inner * size + column];
    }
  }
}

/// Where this code was loaded from, without the slash; "" where the loader does not say.
std::string ownFolder() {
  Dl_info self{};
  if (dladdr(reinterpret_cast<const void*>(&ownFolder), &self) == 0 || !self.dli_fname) return "";
  const std::string path = self.dli_fname;
  const auto slash = path.rfind('/');
  return slash == std::string::npos ? "" : path.substr(0, slash);
}

std::string modulePath() {
  const std::string folder = ownFolder();
  const std::string beside = folder + "/" + moduleName;
  const std::string inLib = folder + "/../lib/" + moduleName;  // for programs that contain this code, such as tests
  return access(beside.c_str(), R_OK) != 0 && access(inLib.c_str(), R_OK) == 0 ? inLib : beside;
}

struct Opened {
  const MatrixProduct product = openProduct(modulePath());
};

}  // namespace

MatrixProduct plainProduct() {
  return {"a plain loop", &multiplyPlainly};
}

MatrixProduct openProduct(const std::string& path) {
  // Never closed: the table is used as long as the process lives.
  void* library = dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (!library) {
    const char* reason = dlerror();
    log::notice("compute tests use a plain loop: {}", reason ? reason : "the module cannot be opened");
    return plainProduct();
  }
  const auto entry = reinterpret_cast<decltype(&falconComputeModule)>(dlsym(library, "falconComputeModule"));
  const FalconComputeModule* module = entry ? entry() : nullptr;
  if (!module || module->version != falconComputeModuleVersion) {
    log::notice("compute tests use a plain loop: {} is of another version", path);
    return plainProduct();
  }
  return {module->name, module->multiply};
}

const MatrixProduct& matrixProduct() {
  static constinit PerProcess<Opened> opened;
  return opened.get().product;
}

}  // namespace falcon::validate
