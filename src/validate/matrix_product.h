// The work of a compute test: a product of two small matrices, by OpenBLAS where its module can be opened.
#pragma once

#include <string>

namespace falcon::validate {

/// c = a b; all size x size, row by row. One thread.
struct MatrixProduct {
  std::string name;  ///< "OpenBLAS", "a plain loop"
  void (*multiply)(int size, const float* a, const float* b, float* c) = nullptr;
  void (*multiplyDouble)(int size, const double* a, const double* b, double* c) = nullptr;
};

/// The built-in one: slower than a BLAS, and just as good for comparing ranks that all use it.
MatrixProduct plainProduct();

/// Opens the module at `path`; the plain loop, with one notice, where that fails.
MatrixProduct openProduct(const std::string& path);

/// The process's product, opened at the first call: libnccl_falcon_compute.so in the folder of the library (or program)
/// that contains this code, or in ../lib of it. Thread-safe.
const MatrixProduct& matrixProduct();

}  // namespace falcon::validate
