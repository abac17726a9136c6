#include "linear.hpp"

#include "gemm.hpp"
#include "pieces.hpp"
#include "reduce.hpp"

namespace xgrad::kernels {
namespace {

/// y (rows, cols) += bias, and what is negative then becomes 0 if `relu`. Bound by bandwidth: the product has
/// just written y.
XGRAD_PARALLEL_KERNEL(add_bias_rows, rows, 2 * cols,
                      (T * y, const T* bias, bool relu, std::size_t rows, std::size_t cols),
                      (y, bias, relu, rows, cols)) {
  y += begin * cols;
  for (; begin < rows; ++begin, y += cols) {
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
void linear_rows(const T* x, const T* weight, const T* bias, T* y, std::size_t rows, std::size_t in,
                 std::size_t out) {
  gemm<T>(false, true, rows, out, in, 1, x, in, weight, in, 0, y, out);
  if (bias) add_bias_rows(y, bias, false, rows, out);
}

template <typename T>
void linear_relu_rows(const T* x, const T* weight, const T* bias, T* y, std::size_t rows, std::size_t in,
                      std::size_t out) {
  gemm<T>(false, true, rows, out, in, 1, x, in, weight, in, 0, y, out);
  add_bias_rows(y, bias, true, rows, out);
}

template <typename T>
void linear_grad_rows(const T* dy, const T* x, const T* weight, T* dx, bool adds_dx, T* dweight, T* dbias,
                      std::size_t rows, std::size_t in, std::size_t out) {
  if (dx) gemm<T>(false, false, rows, in, out, 1, dy, out, weight, in, adds_dx ? T(1) : T(0), dx, in);
  if (dweight) gemm<T>(true, false, out, in, rows, 1, dy, out, x, in, 0, dweight, in);
  if (dbias) sum_middle(dy, 1, rows, out, dbias);
}

#define XGRAD_INSTANTIATE(T)                                                                               \
  template void linear_rows(const T*, const T*, const T*, T*, std::size_t, std::size_t, std::size_t);      \
  template void linear_relu_rows(const T*, const T*, const T*, T*, std::size_t, std::size_t, std::size_t); \
  template void linear_grad_rows(const T*, const T*, const T*, T*, bool, T*, T*, std::size_t, std::size_t, \
                                 std::size_t);

XGRAD_INSTANTIATE(float)
XGRAD_INSTANTIATE(double)

}  // namespace xgrad::kernels
