#include "small_gemm.hpp"

#include <cstdint>

#include "register_tile.hpp"
#include "transpose_square.hpp"

namespace xgrad::kernels {
namespace {

// A group of columns counts as full; copying a transposed one takes as long as some rows of its products.
constexpr std::size_t small_product = 2560, rows_per_copy = 4;
constexpr std::size_t copied_depth = small_product / tile_cols / (1 + rows_per_copy);

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
  multiply_columns<width>(alpha, a, columns, step, beta, c.some_cols(first, width));
}

}  // namespace

bool is_small(bool trans_b, std::size_t m, std::size_t n, std::size_t k) {
  if (m > small_product || n > small_product || k > small_product) return false;
  const std::size_t rest = n % tile_cols, groups = n / tile_cols + (rest & 1) + (rest >> 1 & 1) + (rest >> 2);
  const std::uint64_t rows = m + (trans_b ? rows_per_copy : 0);  // a product of these exceeds 32 bits
  return rows * groups * tile_cols * k <= small_product;
}

/// Columns in groups of 8, 4, 2 and 1, and 4 rows at a time, so that every step multiplies 4 numbers of op(A)
/// with up to 8 contiguous ones. Bound by latency.
XGRAD_KERNEL(void, small_gemm,
             (T alpha, const Matrix<const T>& a, const Matrix<const T>& b, T beta, const Matrix<T>& c),
             (alpha, a, b, beta, c)) {
  for_columns(c.cols, [&](auto width, std::size_t first)
                          XGRAD_INLINE_LAMBDA { small_columns<width>(first, alpha, a, b, beta, c); });
}

}  // namespace xgrad::kernels
