#include "pack.hpp"

#include <algorithm>
#include <cstring>

#include "register_tile.hpp"
#include "transpose_square.hpp"

namespace xgrad::kernels {

/// Bound by bandwidth.
XGRAD_KERNEL(void, pack, (const Matrix<const T>& matrix, T* packed), (matrix, packed)) {
  const T* const from = matrix.data;
  const std::size_t rows = matrix.rows, cols = matrix.cols, ld = matrix.stride;
  if (!matrix.transposed) {
    if (cols == tile_cols) {
      // a row of known length is a load and a store or two
      for (std::size_t r = 0; r < rows; ++r)
        std::memcpy(packed + r * tile_cols, from + r * ld, tile_cols * sizeof(T));
      return;
    }
    for (std::size_t r = 0; r < rows; ++r) {
      XGRAD_INDEPENDENT
      for (std::size_t c = 0; c < cols; ++c) packed[r * cols + c] = from[r * ld + c];
    }
    return;
  }
  // whole lines of the cache are written at once
  constexpr std::size_t line = 64 / sizeof(T);
  const std::size_t square_rows = rows / 4 * 4, square_cols = cols / 4 * 4;
  for (std::size_t begin = 0; begin < square_cols; begin += line) {
    const std::size_t end = std::min(square_cols, begin + line);
    for (std::size_t r = 0; r < square_rows; r += 4) {
      for (std::size_t c = begin; c < end; c += 4)
        transpose_square(from + c * ld + r, ld, packed + r * cols + c, cols);
    }
  }
  for (std::size_t r = 0; r < rows; ++r) {
    for (std::size_t c = r < square_rows ? square_cols : 0; c < cols; ++c)
      packed[r * cols + c] = from[c * ld + r];
  }
}

}  // namespace xgrad::kernels
