#include "validate/matrix_product.h"

#include <algorithm>

#include "base/log.h"
#include "base/module_file.h"
#include "base/per_process.h"
#include "validate/compute_module/compute_module.h"

namespace falcon::validate {
namespace {

constexpr const char* moduleName = "libnccl_falcon_compute.so";

template <class Number>
void multiplyPlainly(int size, const Number* a, const Number* b, Number* c) {
  std::fill(c, c + static_cast<std::ptrdiff_t>(size) * size, Number(0));
  for (int row = 0; row < size; ++row) {
    for (int inner = 0; inner < size; ++inner) {
      const Number factor = a[row * size + inner];
      for (int column = 0; column < size; ++column) c[row * size + column] += factor * b[inner * size + column];
    }
  }
}

struct Opened {
  const MatrixProduct product = openProduct(modulePath(moduleName));
};

}  // namespace

MatrixProduct plainProduct() {
  return {"a plain loop", &multiplyPlainly<float>, &multiplyPlainly<double>};
}

MatrixProduct openProduct(const std::string& path) {
  const auto symbol = symbolOfModule(path, "falconComputeModule");
  if (!symbol) {
    log::notice("compute tests use a plain loop: {}", symbol.error().message());
    return plainProduct();
  }
  const auto entry = reinterpret_cast<decltype(&falconComputeModule)>(*symbol);
  const FalconComputeModule* module = entry();
  if (!module || module->version != falconComputeModuleVersion) {
    log::notice("compute tests use a plain loop: {} is of another version", path);
    return plainProduct();
  }
  return {module->name, module->multiply, module->multiplyDouble};
}

const MatrixProduct& matrixProduct() {
  static constinit PerProcess<Opened> opened;
  return opened.get().product;
}

}  // namespace falcon::validate
