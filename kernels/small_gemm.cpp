#include "small_gemm.hpp"

#include <cstring>

#include "transpose_square.hpp"

namespace xgrad::kernels {
namespace {

// A group of columns counts as full; copying a transposed one takes as long as some rows of its products.
constexpr std::size_t small_product = 2560, group = 8, rows_per_copy = 4;
constexpr std::size_t copied_depth = small_product / group / (1 + rows_per_copy);

/// `width` numbers in a register; a vector of one would live in memory.
template <typename T, std::size_t width>
struct Lanes {
  typedef T type __attribute__((vector_size(width * sizeof(T))));
};
template <typename T>
struct Lanes<T, 1> {
  using type = T;
};

/// `height` rows of c (height, width) = alpha op(A) columns + beta c, where a row of `columns` is contiguous
/// and `step` behind the one before. beta = 0 does not read c.
template <std::size_t height, std::size_t width, typename T>
XGRAD_INLINE void small_block(const T* a, std::size_t a_row, std::size_t a_step, const T* columns,
                              std::size_t step, std::size_t k, T alpha, T beta, T* c, std::size_t ldc) {
  using Row = typename Lanes<T, width>::type;
  Row sum[height]{};
  for (std::size_t p = 0; p < k; ++p, a += a_step, columns += step) {
    Row row;
    std::memcpy(&row, columns, sizeof row);
    for (std::size_t r = 0; r < height; ++r) sum[r] += a[r * a_row] * row;
  }
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

/// `width` columns of C, from `first` on. Those of a transposed B are copied to the stack first.
template <std::size_t width, typename T>
XGRAD_INLINE void small_columns(std::size_t first, T alpha, const Matrix<const T>& a,
                                const Matrix<const T>& b, T beta, const Matrix<T>& c) {
  const std::size_t k = a.cols;
  const T* columns = b.some_cols(first, width).data;
  std::size_t step = b.stride;
  T copied[copied_depth * width];
  if (b.transposed) {
    std::size_t p = 0;
    if constexpr (width % 4 == 0) {
      for (; p + 4 <= k; p += 4) {
        for (std::size_t l = 0; l < width; l += 4)
          transpose_square(columns + p + l * step, step, copied + p * width + l, width);
      }
    }
    for (; p < k; ++p) {
      for (std::size_t l = 0; l < width; ++l) copied[p * width + l] = columns[p + l * step];
    }
    columns = copied;
    step = width;
  }
  constexpr std::size_t height = 4;
  const std::size_t a_row = a.transposed ? 1 : a.stride, a_step = a.transposed ? a.stride : 1;
  const T* from = a.data;
  T* to = c.data + first;
  std::size_t m = c.rows;
  for (; m >= height; m -= height, from += height * a_row, to += height * c.stride)
    small_block<height, width>(from, a_row, a_step, columns, step, k, alpha, beta, to, c.stride);
  for (; m > 0; --m, from += a_row, to += c.stride)
    small_block<1, width>(from, a_row, a_step, columns, step, k, alpha, beta, to, c.stride);
}

}  // namespace

bool is_small(bool trans_b, std::size_t m, std::size_t n, std::size_t k) {
  if (m > small_product || n > small_product || k > small_product) return false;
  const std::size_t rest = n % group, groups = n / group + (rest & 1) + (rest >> 1 & 1) + (rest >> 2);
  return (m + (trans_b ? rows_per_copy : 0)) * groups * group * k <= small_product;
}

/// Columns in groups of 8, 4, 2 and 1, and 4 rows at a time, so that every step multiplies 4 numbers of op(A)
/// with up to 8 contiguous ones. Bound by latency.
XGRAD_KERNEL(void, small_gemm,
             (T alpha, const Matrix<const T>& a, const Matrix<const T>& b, T beta, const Matrix<T>& c),
             (alpha, a, b, beta, c)) {
  std::size_t first = 0;
  for (; first + group <= c.cols; first += group) small_columns<group>(first, alpha, a, b, beta, c);
  if (c.cols & 4) {
    small_columns<4>(first, alpha, a, b, beta, c);
    first += 4;
  }
  if (c.cols & 2) {
    small_columns<2>(first, alpha, a, b, beta, c);
    first += 2;
  }
  if (c.cols & 1) small_columns<1>(first, alpha, a, b, beta, c);
}

}  // namespace xgrad::kernels
