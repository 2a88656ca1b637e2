#include "compute_module.h"

#include <cblas.h>

/* Not in every cblas.h; there only in OpenBLAS builds with threads, where the test must stay on one. */
extern void openblas_set_num_threads(int count) __attribute__((weak));

static void multiply(int size, const float* a, const float* b, float* c) {
  cblas_sgemm(CblasRowMajor, CblasNoTrans, CblasNoTrans, size, size, size, 1.0f, a, size, b, size, 0.0f, c, size);
}

static void multiplyDouble(int size, const double* a, const double* b, double* c) {
  cblas_dgemm(CblasRowMajor, CblasNoTrans, CblasNoTrans, size, size, size, 1.0, a, size, b, size, 0.0, c, size);
}

__attribute__((visibility("default"))) const struct FalconComputeModule* falconComputeModule(void) {
  static const struct FalconComputeModule module = {falconComputeModuleVersion, "OpenBLAS", multiply, multiplyDouble};
  if (openblas_set_num_threads) openblas_set_num_threads(1);
  return &module;
}
