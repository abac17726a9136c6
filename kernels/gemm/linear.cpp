#include "linear.hpp"

#include "../../base/detail/system/pieces.hpp"
#include "../rows/reduce.hpp"
#include "gemm.hpp"

namespace xgrad::kernels {
namespace {

/// y (rows, cols) += bias, and what is negative then becomes 0 if `relu`. Bound by bandwidth: the product has
/// just written y.
XGRAD_PARALLEL_KERNEL(add_bias_rows, rows, 2 * cols,
                      (T * y, const T* bias, bool relu, std::size_t rows, std::size_t cols),
                      (y, bias, relu, rows, cols)) {
  y += begin * cols;
  for (; begin < end; ++begin, y += cols) {
    if (relu) {
      XGRAD_INDEPENDENT
      for (std::size_t c = 0; c < cols; ++c) {
        const T sum = y[c] + bias[c];
        y[c] = sum < T(0) ? T(0) : sum;
      }
    } else {
      XGRAD_INDEPENDENT
      for (std::size_t c = 0; c < cols; ++c) y[c] += bias[c];
    }
  }
}

}  // namespace

template <typename T>
void add_to_rows(T* y, const T* bias, std::size_t rows, std::size_t cols) {
  add_bias_rows(y, bias, false, rows, cols);
}

template <typename T>
void linear_rows(const Matrix<const T>& x, const Matrix<const T>& weight, const T* bias, T* y) {
  gemm<T>(1, x, weight.transpose(), 0, {y, x.rows, weight.rows});
  if (bias) add_bias_rows(y, bias, false, x.rows, weight.rows);
}

template <typename T>
void linear_relu_rows(const Matrix<const T>& x, const Matrix<const T>& weight, const T* bias, T* y) {
  gemm<T>(1, x, weight.transpose(), 0, {y, x.rows, weight.rows});
  add_bias_rows(y, bias, true, x.rows, weight.rows);
}

template <typename T>
void linear_grad_rows(const Matrix<const T>& dy, const Matrix<const T>& x, const Matrix<const T>& weight,
                      const LinearGrads<T>& grads) {
  if (grads.dx) gemm<T>(1, dy, weight, grads.adds_dx ? T(1) : T(0), {grads.dx, x.rows, x.cols});
  if (grads.dweight) gemm<T>(1, dy.transpose(), x, 0, {grads.dweight, weight.rows, weight.cols});
  if (grads.dbias) sum_middle(dy.data, 1, dy.rows, dy.cols, grads.dbias);
}

#define XGRAD_INSTANTIATE(T)                                                                             \
  template void add_to_rows(T*, const T*, std::size_t, std::size_t);                                     \
  template void linear_rows(const Matrix<const T>&, const Matrix<const T>&, const T*, T*);               \
  template void linear_relu_rows(const Matrix<const T>&, const Matrix<const T>&, const T*, T*);          \
  template void linear_grad_rows(const Matrix<const T>&, const Matrix<const T>&, const Matrix<const T>&, \
                                 const LinearGrads<T>&);

XGRAD_INSTANTIATE(float)
XGRAD_INSTANTIATE(double)

}  // namespace xgrad::kernels
