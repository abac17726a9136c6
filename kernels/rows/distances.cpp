#include "distances.hpp"

#include <algorithm>
#include <cmath>

#include "../../base/detail/pieces.hpp"
#include "../lanes.hpp"

namespace xgrad::kernels {

/// Bound by flops.
XGRAD_PARALLEL_KERNEL(distances, rows, pairs.m* pairs.k,
                      (const T* a, const T* b, const RowPairs& pairs, T* y, std::size_t rows),
                      (a, b, pairs, y, rows)) {
  const auto [n, m, k] = pairs;
  for (std::size_t i = begin; i < end; ++i) {
    const T* const u = a + i * k;
    for (std::size_t j = 0; j < m; ++j) {
      const T* const v = b + (i / n * m + j) * k;
      y[i * m + j] = std::sqrt(sum_lanes<T>(
          k, [u, v](std::size_t c) XGRAD_INLINE_LAMBDA { return (u[c] - v[c]) * (u[c] - v[c]); }));
    }
  }
}

/// Bound by flops.
XGRAD_PARALLEL_KERNEL(distances_grad, rows, pairs.m* pairs.k,
                      (const T* dy, const T* y, std::size_t row, std::size_t col, const T* a, const T* b,
                       const RowPairs& pairs, T* da, std::size_t rows),
                      (dy, y, row, col, a, b, pairs, da, rows)) {
  const auto [n, m, k] = pairs;
  for (std::size_t i = begin; i < end; ++i) {
    const std::size_t batch = i / n;
    const T* const u = a + i * k;
    T* const du = da + i * k;
    std::fill_n(du, k, T(0));
    for (std::size_t j = 0; j < m; ++j) {
      const std::size_t at = batch * n * m + i % n * row + j * col;
      if (y[at] == T(0)) continue;
      const T* const v = b + (batch * m + j) * k;
      const T weight = dy[at] / y[at];
      XGRAD_INDEPENDENT
      for (std::size_t c = 0; c < k; ++c) du[c] += weight * (u[c] - v[c]);
    }
  }
}

}  // namespace xgrad::kernels
