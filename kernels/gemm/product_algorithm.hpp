#pragma once

#include <cstddef>
#include <cstdint>

#include "register_tile.hpp"
#include "small_gemm.hpp"

namespace xgrad::kernels {

enum class ProductAlgorithm {
  loops,     ///< small_gemm
  few_rows,  ///< few_rows_gemm, which reads the second factor once
  bfloat16,  ///< factors rounded to bfloat16, by a matrix unit or by vectors
  tiles,     ///< large_gemm, in tiles that BLAS need not pack
  blas,      ///< large_gemm, in one call of BLAS for each thread, or without BLAS by the library's own loops
};

/// C (m, n) = A (m, k) B (k, n), all of which are at least 1.
struct ProductShape {
  std::size_t m, n, k;
  bool trans_a = false, trans_b = false;
};

constexpr std::size_t looped_product = 2560;  ///< multiplications in loops on every processor

/// Whether loops take no longer than for so many multiplications: a group of columns counts as full, and
/// copying a transposed one takes as long as some rows of its products.
inline bool is_small(const ProductShape& shape, std::size_t max_product) {
  const auto [m, n, k, trans_a, trans_b] = shape;
  if (m > max_product || n > max_product || k > max_product) return false;
  const std::size_t rest = n % tile_cols, groups = n / tile_cols + (rest & 1) + (rest >> 1 & 1) + (rest >> 2);
  const std::uint64_t rows = m + (trans_b ? rows_per_copy : 0);  // a product of these exceeds 32 bits
  return rows * groups * tile_cols * k <= max_product;
}

/// product_algorithm of larger products than loops compute on every processor.
template <typename T>
ProductAlgorithm larger_product_algorithm(const ProductShape& shape);

/// How gemm computes a product of T: a rule by sizes, the processor and the precision of products, never a
/// measurement, on which results would depend.
template <typename T>
ProductAlgorithm product_algorithm(const ProductShape& shape) {
  if (is_small(shape, looped_product)) return ProductAlgorithm::loops;  // known at once
  return larger_product_algorithm<T>(shape);
}

}  // namespace xgrad::kernels
