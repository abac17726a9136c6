#pragma once

#include <cmath>
#include <cstddef>

#include "../lanes.hpp"
#include "../pointwise/vectorized_math.hpp"

// One row of a softmax, for the kernels that fuse it with what comes before or after.
namespace xgrad::kernels {

/// y = exp(x - max) scale, and returns scale = 1 / sum(exp(x - max)); y may be x.
template <typename T>
XGRAD_INLINE T softmax_row(const T* x, T* y, std::size_t n, T max) {
  XGRAD_INDEPENDENT
  for (std::size_t i = 0; i < n; ++i) y[i] = vectorized::exp_nonpositive(x[i] - max);
  const T scale = T(1) / sum_lanes<T>(n, [y](std::size_t i) XGRAD_INLINE_LAMBDA { return y[i]; });
  XGRAD_INDEPENDENT
  for (std::size_t i = 0; i < n; ++i) y[i] *= scale;
  return scale;
}

/// dx = y (dy - sum(dy y)); dx may be dy or y.
template <typename T>
XGRAD_INLINE void softmax_grad_row(const T* dy, const T* y, T* dx, std::size_t n) {
  const T dot = sum_lanes<T>(n, [dy, y](std::size_t i) XGRAD_INLINE_LAMBDA { return dy[i] * y[i]; });
  XGRAD_INDEPENDENT
  for (std::size_t i = 0; i < n; ++i) dx[i] = y[i] * (dy[i] - dot);
}

/// y = x - max - log(sum(exp(x - max))); y may be x. The exponentials are computed in pieces on the stack.
template <typename T>
XGRAD_INLINE void log_softmax_row(const T* x, T* y, std::size_t n) {
  constexpr std::size_t block = 256;
  const T max = max_lanes(x, n);
  T sum = 0;
  for (std::size_t begin = 0; begin < n; begin += block) {
    const std::size_t size = std::min(block, n - begin);
    T e[block];
    XGRAD_INDEPENDENT
    for (std::size_t i = 0; i < size; ++i) e[i] = vectorized::exp_nonpositive(x[begin + i] - max);
    sum += sum_lanes<T>(size, [&e](std::size_t i) XGRAD_INLINE_LAMBDA { return e[i]; });
  }
  const T log_sum = std::log(sum);
  XGRAD_INDEPENDENT
  for (std::size_t i = 0; i < n; ++i) y[i] = (x[i] - max) - log_sum;
}

}  // namespace xgrad::kernels
