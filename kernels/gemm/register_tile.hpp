#pragma once

#include <cstddef>
#include <cstring>
#include <type_traits>

#include "../lanes.hpp"
#include "../matrix.hpp"

// Products in tiles of C that stay in registers while k is walked.
namespace xgrad::kernels {

/// c (height, width) = alpha sum + beta c. beta = 0 does not read c.
template <std::size_t height, typename Row, typename T>
XGRAD_INLINE void store_tile(const Row (&sum)[height], T alpha, T beta, T* c, std::size_t ldc) {
  for (std::size_t r = 0; r < height; ++r, c += ldc) {
    Row y = alpha * sum[r];
    if (beta != T(0)) {
      Row before;
      std::memcpy(&before, c, sizeof before);
      y += beta * before;
    }
    std::memcpy(c, &y, sizeof y);
  }
}

/// `height` rows of c (height, width) = alpha op(A) columns + beta c, where a row of `columns` is contiguous
/// and `step` behind the one before.
template <std::size_t height, std::size_t width, typename T>
XGRAD_INLINE void multiply_tile(const T* a, std::size_t a_row, std::size_t a_step, const T* columns,
                                std::size_t step, std::size_t k, T alpha, T beta, T* c, std::size_t ldc) {
  using Row = typename Lanes<T, width>::type;
  Row sum[height]{};
  for (std::size_t p = 0; p < k; ++p, a += a_step, columns += step) {
    Row row;
    std::memcpy(&row, columns, sizeof row);
    for (std::size_t r = 0; r < height; ++r) sum[r] += a[r * a_row] * row;
  }
  store_tile(sum, alpha, beta, c, ldc);
}

/// Calls f(height, first row of A, first row of C) for 4 rows at a time, and for each of the rest.
template <typename T, typename F>
XGRAD_INLINE void for_rows(const Matrix<const T>& a, const Matrix<T>& c, const F& f) {
  constexpr std::size_t height = 4;
  const std::size_t a_row = a.transposed ? 1 : a.stride;
  const T* from = a.data;
  T* to = c.data;
  std::size_t m = c.rows;
  for (; m >= height; m -= height, from += height * a_row, to += height * c.stride)
    f(std::integral_constant<std::size_t, height>(), from, to);
  for (; m > 0; --m, from += a_row, to += c.stride) f(std::integral_constant<std::size_t, 1>(), from, to);
}

/// c (rows, width) = alpha A columns + beta c.
template <std::size_t width, typename T>
XGRAD_INLINE void multiply_columns(T alpha, const Matrix<const T>& a, const T* columns, std::size_t step,
                                   T beta, const Matrix<T>& c) {
  const std::size_t a_row = a.transposed ? 1 : a.stride, a_step = a.transposed ? a.stride : 1;
  for_rows<T>(a, c, [&](auto height, const T* from, T* to) XGRAD_INLINE_LAMBDA {
    multiply_tile<height, width>(from, a_row, a_step, columns, step, a.cols, alpha, beta, to, c.stride);
  });
}

/// How many columns a tile has but for the last ones of C.
constexpr std::size_t tile_cols = 8;

/// Calls f(width, first) for tile_cols columns at a time, and for the rest in groups of 4, 2 and 1.
template <typename F>
XGRAD_INLINE void for_columns(std::size_t cols, const F& f) {
  std::size_t first = 0;
  for (; first + tile_cols <= cols; first += tile_cols)
    f(std::integral_constant<std::size_t, tile_cols>(), first);
  if (cols & 4) {
    f(std::integral_constant<std::size_t, 4>(), first);
    first += 4;
  }
  if (cols & 2) {
    f(std::integral_constant<std::size_t, 2>(), first);
    first += 2;
  }
  if (cols & 1) f(std::integral_constant<std::size_t, 1>(), first);
}

}  // namespace xgrad::kernels
