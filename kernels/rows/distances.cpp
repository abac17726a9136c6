#include "distances.hpp"

#include <algorithm>
#include <cmath>
#include <limits>

#include "../../base/detail/system/pieces.hpp"
#include "../lanes.hpp"

namespace xgrad::kernels {

namespace {

/// |u - v| where the squares leave the range: of the differences times a power of two.
template <typename T>
double scaled_distance(const T* u, const T* v, std::size_t k) {
  double largest = 0;
  for (std::size_t c = 0; c < k; ++c)
    largest = std::max(largest, std::abs(static_cast<double>(u[c]) - static_cast<double>(v[c])));
  if (!(largest > 0) || !std::isfinite(largest)) return largest;
  const int exponent = std::ilogb(largest);
  double squares = 0;
  for (std::size_t c = 0; c < k; ++c) {
    const double d = std::ldexp(static_cast<double>(u[c]) - static_cast<double>(v[c]), -exponent);
    squares += d * d;
  }
  return std::ldexp(std::sqrt(squares), exponent);
}

}  // namespace

/// Bound by flops.
XGRAD_PARALLEL_KERNEL(distances, rows, pairs.m* pairs.k,
                      (const T* a, const T* b, const RowPairs& pairs, T* y, std::size_t rows),
                      (a, b, pairs, y, rows)) {
  const auto [n, m, k] = pairs;
  for (std::size_t i = begin; i < end; ++i) {
    const T* const u = a + i * k;
    for (std::size_t j = 0; j < m; ++j) {
      const T* const v = b + (i / n * m + j) * k;
      constexpr T least = std::numeric_limits<T>::min() / std::numeric_limits<T>::epsilon();
      const T squares = sum_lanes<T>(
          k, [u, v](std::size_t c) XGRAD_INLINE_LAMBDA { return (u[c] - v[c]) * (u[c] - v[c]); });
      const bool in_range =
          (squares >= least && squares <= std::numeric_limits<T>::max()) || squares != squares;
      y[i * m + j] = in_range ? std::sqrt(squares) : static_cast<T>(scaled_distance(u, v, k));
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
      const T slope = dy[at], length = y[at];
      const T weight = slope / length;
      if (std::isnormal(weight) || slope == T(0)) {
        XGRAD_INDEPENDENT
        for (std::size_t c = 0; c < k; ++c) du[c] += weight * (u[c] - v[c]);
      } else {
        for (std::size_t c = 0; c < k; ++c) du[c] += slope * ((u[c] - v[c]) / length);
      }
    }
  }
}

}  // namespace xgrad::kernels
