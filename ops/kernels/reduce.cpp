#include <algorithm>
#include <limits>
#include <xgrad/ops/kernels/axes.hpp>
#include <xgrad/ops/kernels/binary.hpp>
#include <xgrad/ops/kernels/lanes.hpp>
#include <xgrad/ops/kernels/reduce.hpp>

namespace xgrad::kernels {

namespace {

/// y[r y_stride] += sum of row r of x (rows, cols). Bound by bandwidth; by latency in rows under 32.
XGRAD_KERNEL(void, add_row_sums,
             (const T* x, std::size_t rows, std::size_t cols, T* y, std::ptrdiff_t y_stride),
             (x, rows, cols, y, y_stride)) {
  for (std::size_t r = 0; r < rows; ++r, x += cols, y += y_stride) {
    *y += sum_lanes<T>(cols, [x](std::size_t i) XGRAD_INLINE_LAMBDA { return x[i]; });
  }
}

/// y[c] += sum of column c of x (rows, cols). Blocks of 32 rows are added in T, four at once, and the blocks
/// in double, for 256 columns at a time, which stay in the first-level cache. Bound by bandwidth.
XGRAD_KERNEL(void, add_column_sums, (const T* x, std::size_t rows, std::size_t cols, T* y),
             (x, rows, cols, y)) {
  constexpr std::size_t width = 256, height = 32;
  for (std::size_t begin = 0; begin < cols; begin += width) {
    const std::size_t n = std::min(width, cols - begin);
    double total[width] = {};
    for (std::size_t top = 0; top < rows; top += height) {
      const std::size_t bottom = std::min(rows, top + height);
      T block[width] = {};
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
    for (std::size_t c = 0; c < n; ++c) y[begin + c] += static_cast<T>(total[c]);
  }
}

}  // namespace

template <typename T>
void sum_middle(const T* x, std::size_t outer, std::size_t n, std::size_t inner, T* y) {
  fill(T(0), y, outer * inner);
  if (inner == 1) return add_row_sums(x, outer, n, y, 1);
  for (std::size_t o = 0; o < outer; ++o) add_column_sums(x + o * n * inner, n, inner, y + o * inner);
}

/// y = max over the middle axis, in two steps that vectorise: the maximum of the numbers, then nan where one
/// was. Bound by bandwidth.
XGRAD_KERNEL(void, max_middle, (const T* x, std::size_t outer, std::size_t n, std::size_t inner, T* y),
             (x, outer, n, inner, y)) {
  constexpr T nan = std::numeric_limits<T>::quiet_NaN();
  for (std::size_t o = 0; o < outer; ++o, x += n * inner, y += inner) {
    if (inner == 1) {
      const unsigned has_nan = reduce_lanes(
          0, n, 0u, [x](std::size_t i) XGRAD_INLINE_LAMBDA { return x[i] != x[i] ? 1u : 0u; },
          [](unsigned a, unsigned b) XGRAD_INLINE_LAMBDA { return a | b; });
      *y = has_nan ? nan : max_lanes(x, n);
      continue;
    }
    std::fill_n(y, inner, -std::numeric_limits<T>::infinity());
    for (std::size_t i = 0; i < n; ++i) {
      const T* row = x + i * inner;
      XGRAD_INDEPENDENT
      for (std::size_t c = 0; c < inner; ++c) {
        const T v = row[c], m = y[c];
        const T larger = v > m ? v : m;  // m if v is nan, v if m is nan
        y[c] = m != m ? m : (v != v ? v : larger);
      }
    }
  }
}

XGRAD_KERNEL(double, dot, (const T* a, const T* b, std::size_t n), (a, b, n)) {
  return sum_lanes<double>(
      n, [a, b](std::size_t i) XGRAD_INLINE_LAMBDA { return static_cast<double>(a[i]) * b[i]; });
}

template <typename T>
double squared_norm(const T* x, std::size_t n) {
  return dot(x, x, n);
}

/// The last two merged axes are row sums (last stride 0), column sums (strides 0, 1) or neither, in which
/// case every row is added to y element by element.
template <typename T>
void sum_broadcast(std::size_t rank, const std::size_t* shape, const T* x, const std::ptrdiff_t* y_strides,
                   T* y, std::size_t y_size) {
  fill(T(0), y, y_size);
  const Axes<1> axes = merge_axes<1>(rank, shape, {y_strides}, 2);
  const std::size_t rows = axes.size(axes.rank - 2), cols = axes.size(axes.rank - 1);
  const std::ptrdiff_t row_stride = axes.stride(0, axes.rank - 2), col_stride = axes.stride(0, axes.rank - 1);
  for_each_outer(axes, 2, [&](const auto& offset) {
    T* out = y + offset[0];
    if (col_stride == 0) {
      add_row_sums(x, rows, cols, out, row_stride);
    } else if (row_stride == 0 && col_stride == 1) {
      add_column_sums(x, rows, cols, out);
    } else {
      for (std::size_t r = 0; r < rows; ++r) {
        T* row = out + static_cast<std::ptrdiff_t>(r) * row_stride;
        for (std::size_t c = 0; c < cols; ++c)
          row[static_cast<std::ptrdiff_t>(c) * col_stride] += x[r * cols + c];
      }
    }
    x += rows * cols;
  });
}

template void sum_middle(const float*, std::size_t, std::size_t, std::size_t, float*);
template void sum_middle(const double*, std::size_t, std::size_t, std::size_t, double*);
template double squared_norm(const float*, std::size_t);
template double squared_norm(const double*, std::size_t);
template void sum_broadcast(std::size_t, const std::size_t*, const float*, const std::ptrdiff_t*, float*,
                            std::size_t);
template void sum_broadcast(std::size_t, const std::size_t*, const double*, const std::ptrdiff_t*, double*,
                            std::size_t);

}  // namespace xgrad::kernels
