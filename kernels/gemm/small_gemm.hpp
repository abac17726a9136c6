#pragma once

#include <cstddef>
#include <cstdint>

#include "../matrix.hpp"
#include "register_tile.hpp"

namespace xgrad::kernels {

// A group of columns counts as full; copying a transposed one takes as long as some rows of its products.
constexpr std::size_t small_product = 2560, most_small_product = 10240, rows_per_copy = 4;

/// True for products of up to `most` multiplications. Those of small_product are done in loops before larger
/// ones have chosen and packed, on every processor.
inline bool is_small(bool trans_b, std::size_t m, std::size_t n, std::size_t k, std::size_t most) {
  if (m > most || n > most || k > most) return false;
  const std::size_t rest = n % tile_cols, groups = n / tile_cols + (rest & 1) + (rest >> 1 & 1) + (rest >> 2);
  const std::uint64_t rows = m + (trans_b ? rows_per_copy : 0);  // a product of these exceeds 32 bits
  return rows * groups * tile_cols * k <= most;
}

/// C = alpha A B + beta C as gemm computes it, where that is_small up to most_small_product.
template <typename T>
void small_gemm(T alpha, const Matrix<const T>& a, const Matrix<const T>& b, T beta, const Matrix<T>& c);

}  // namespace xgrad::kernels
