#pragma once

#include <cstddef>

#include "../../base/detail/arrays/vectorized.hpp"

namespace xgrad::kernels {

/// y (4, 4) = the transpose of x (4, 4).
template <typename T>
XGRAD_INLINE void transpose_square(const T* x, std::size_t ldx, T* y, std::size_t ldy) {
  typedef T Row __attribute__((vector_size(4 * sizeof(T)), aligned(alignof(T)), may_alias));
  Row in[4], low[2], high[2];
  for (std::size_t i = 0; i < 4; ++i) in[i] = *reinterpret_cast<const Row*>(x + i * ldx);
  for (std::size_t i = 0; i < 2; ++i) {
    low[i] = __builtin_shufflevector(in[2 * i], in[2 * i + 1], 0, 4, 1, 5);
    high[i] = __builtin_shufflevector(in[2 * i], in[2 * i + 1], 2, 6, 3, 7);
  }
  *reinterpret_cast<Row*>(y) = __builtin_shufflevector(low[0], low[1], 0, 1, 4, 5);
  *reinterpret_cast<Row*>(y + ldy) = __builtin_shufflevector(low[0], low[1], 2, 3, 6, 7);
  *reinterpret_cast<Row*>(y + 2 * ldy) = __builtin_shufflevector(high[0], high[1], 0, 1, 4, 5);
  *reinterpret_cast<Row*>(y + 3 * ldy) = __builtin_shufflevector(high[0], high[1], 2, 3, 6, 7);
}

}  // namespace xgrad::kernels
