// Matrix products by OpenBLAS, in f32 for training and f64 for checking gradients.
#pragma once

#include <cstddef>
#include <type_traits>

namespace falcon::train {

/// A row-major view; `stride` elements from one row to the next.
template <class Real>
struct Matrix {
  Real* data;
  int rows;
  int columns;
  int stride;

  Matrix(Real* values, int rowCount, int columnCount) : Matrix(values, rowCount, columnCount, columnCount) {}
  Matrix(Real* values, int rowCount, int columnCount, int rowStride)
      : data(values), rows(rowCount), columns(columnCount), stride(rowStride) {}
  template <class Other>
  requires std::is_same_v<const Other, Real> Matrix(const Matrix<Other>& other)
      : Matrix(other.data, other.rows, other.columns, other.stride) {}
};

enum class Form { plain, transposed };

/// product = scale * form(a) form(b) + keep * product. The shapes after transposing must fit; not checked.
void multiply(Matrix<const float> a, Form aForm, Matrix<const float> b, Form bForm, Matrix<float> product,
              float scale = 1, float keep = 0);
void multiply(Matrix<const double> a, Form aForm, Matrix<const double> b, Form bForm, Matrix<double> product,
              double scale = 1, double keep = 0);

/// OpenBLAS's name of faster kernels than it has chosen. It knows processors by their model, and takes kernels of 2004
/// for one that is younger than itself (2.5 times slower on an Intel Xeon of 2023 by OpenBLAS 0.3.21). Null: it chose
/// well.
const char* fasterKernels();

/// One BLAS thread for this process: ranks share the machine's cores, and sums must not depend on a thread count.
void useOneBlasThread();

}  // namespace falcon::train
