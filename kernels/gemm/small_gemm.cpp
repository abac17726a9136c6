#include "small_gemm.hpp"

#include "register_tile.hpp"
#include "transpose_square.hpp"

namespace xgrad::kernels {
namespace {

constexpr std::size_t copied_depth = most_small_product / tile_cols / (1 + rows_per_copy);

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

/// Columns in groups of 8, 4, 2 and 1, and 4 rows at a time, so that every step multiplies 4 numbers of op(A)
/// with up to 8 contiguous ones. Bound by latency.
XGRAD_KERNEL(void, small_gemm,
             (T alpha, const Matrix<const T>& a, const Matrix<const T>& b, T beta, const Matrix<T>& c),
             (alpha, a, b, beta, c)) {
  for_columns(c.cols, [&](auto width, std::size_t first)
                          XGRAD_INLINE_LAMBDA { small_columns<width>(first, alpha, a, b, beta, c); });
}

}  // namespace xgrad::kernels
