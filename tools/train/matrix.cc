#include "train/matrix.h"

#include <cblas.h>

#include <mutex>
#include <string_view>

namespace falcon::train {

namespace {

CBLAS_TRANSPOSE blasForm(Form form) {
  return form == Form::plain ? CblasNoTrans : CblasTrans;
}

template <class Real>
int innerSize(const Matrix<const Real>& a, Form form) {
  return form == Form::plain ? a.columns : a.rows;
}

/// The serial OpenBLAS may be called by one thread at a time only (wrong results otherwise); ranks may be threads in
/// tests.
std::mutex oneCaller;

}  // namespace

void multiply(Matrix<const float> a, Form aForm, Matrix<const float> b, Form bForm, Matrix<float> product, float scale,
              float keep) {
  const std::lock_guard lock(oneCaller);
  cblas_sgemm(CblasRowMajor, blasForm(aForm), blasForm(bForm), product.rows, product.columns, innerSize(a, aForm),
              scale, a.data, a.stride, b.data, b.stride, keep, product.data, product.stride);
}

void multiply(Matrix<const double> a, Form aForm, Matrix<const double> b, Form bForm, Matrix<double> product,
              double scale, double keep) {
  const std::lock_guard lock(oneCaller);
  cblas_dgemm(CblasRowMajor, blasForm(aForm), blasForm(bForm), product.rows, product.columns, innerSize(a, aForm),
              scale, a.data, a.stride, b.data, b.stride, keep, product.data, product.stride);
}

const char* fasterKernels() {
#ifdef __x86_64__
  if (std::string_view(openblas_get_corename()) != "Prescott") return nullptr;
  if (__builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") && __builtin_cpu_supports("avx512dq") &&
      __builtin_cpu_supports("avx512vl"))
    return "SkylakeX";
  if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma")) return "Haswell";
#endif
  return nullptr;
}

void useOneBlasThread() {
  openblas_set_num_threads(1);
}

}  // namespace falcon::train
