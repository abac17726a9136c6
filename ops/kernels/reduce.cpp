#include <algorithm>
#include <xgrad/ops/kernels/lanes.hpp>
#include <xgrad/ops/kernels/reduce.hpp>

namespace xgrad::kernels {

namespace {

/// y[r] = sum of row r of x (rows, cols). Bound by bandwidth; by latency in rows under 32.
XGRAD_KERNEL(void, row_sums, (const T* x, std::size_t rows, std::size_t cols, T* y), (x, rows, cols, y)) {
  for (std::size_t r = 0; r < rows; ++r, x += cols, ++y) {
    *y = sum_lanes<T>(cols, [x](std::size_t i) XGRAD_INLINE_LAMBDA { return x[i]; });
  }
}

/// y[c] = sum of column c of x (rows, cols). Blocks of 32 rows are added in T, four at once, and the blocks
/// in double, for 1024 columns at a time, which stay in the first-level cache. Bound by bandwidth.
XGRAD_KERNEL(void, column_sums, (const T* x, std::size_t rows, std::size_t cols, T* y), (x, rows, cols, y)) {
  constexpr std::size_t width = 1024, height = 32;
  for (std::size_t begin = 0; begin < cols; begin += width) {
    const std::size_t n = std::min(width, cols - begin);
    double total[width];
    std::fill_n(total, n, 0.0);
    for (std::size_t top = 0; top < rows; top += height) {
      const std::size_t bottom = std::min(rows, top + height);
      T block[width];
      std::fill_n(block, n, T(0));
      std::size_t r = top;
      for (; r + 4 <= bottom; r += 4) {
        const T* row = x + r * cols + begin;
        for (std::size_t c = 0; c < n; ++c) {
          block[c] += (row[c] + row[c + cols]) + (row[c + 2 * cols] + row[c + 3 * cols]);
        }
      }
      for (; r < bottom; ++r) {
        for (std::size_t c = 0; c < n; ++c) block[c] += x[r * cols + begin + c];
      }
      for (std::size_t c = 0; c < n; ++c) total[c] += block[c];
    }
    for (std::size_t c = 0; c < n; ++c) y[begin + c] = static_cast<T>(total[c]);
  }
}

/// The larger or the smaller of the two; nan if either is.
template <bool largest, typename T>
XGRAD_INLINE T extreme_of(T m, T v) {
  const T y = (largest ? v > m : v < m) ? v : m;
  return v != v ? v : y;
}

/// y (outer, inner) = the largest or smallest along the middle axis of x. Bound by bandwidth.
template <bool largest, typename T>
XGRAD_INLINE void extremes(const T* x, std::size_t outer, std::size_t n, std::size_t inner, T* y) {
  for (std::size_t o = 0; o < outer; ++o, x += n * inner, y += inner) {
    if (inner == 1) {
      *y = reduce_lanes(
          1, n, *x, [x](std::size_t i) XGRAD_INLINE_LAMBDA { return x[i]; },
          [](T m, T v) XGRAD_INLINE_LAMBDA { return extreme_of<largest>(m, v); });
      continue;
    }
    std::copy_n(x, inner, y);
    for (std::size_t i = 1; i < n; ++i) {
      const T* row = x + i * inner;
      XGRAD_INDEPENDENT
      for (std::size_t c = 0; c < inner; ++c) y[c] = extreme_of<largest>(y[c], row[c]);
    }
  }
}

}  // namespace

XGRAD_KERNEL(void, max_middle, (const T* x, std::size_t outer, std::size_t n, std::size_t inner, T* y),
             (x, outer, n, inner, y)) {
  extremes<true>(x, outer, n, inner, y);
}

XGRAD_KERNEL(void, min_middle, (const T* x, std::size_t outer, std::size_t n, std::size_t inner, T* y),
             (x, outer, n, inner, y)) {
  extremes<false>(x, outer, n, inner, y);
}

template <typename T>
void sum_middle(const T* x, std::size_t outer, std::size_t n, std::size_t inner, T* y) {
  if (inner == 1) return row_sums(x, outer, n, y);
  for (std::size_t o = 0; o < outer; ++o) column_sums(x + o * n * inner, n, inner, y + o * inner);
}

XGRAD_KERNEL(double, squared_norm, (const T* x, std::size_t n), (x, n)) {
  return sum_lanes<double>(
      n, [x](std::size_t i) XGRAD_INLINE_LAMBDA { return static_cast<double>(x[i]) * x[i]; });
}

template void sum_middle(const float*, std::size_t, std::size_t, std::size_t, float*);
template void sum_middle(const double*, std::size_t, std::size_t, std::size_t, double*);

}  // namespace xgrad::kernels
