#pragma once

#include <cstddef>

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

/// How gemm computes a product of T: a rule by sizes, the processor and the precision of products, never a
/// measurement, on which results would depend.
template <typename T>
ProductAlgorithm product_algorithm(const ProductShape& shape);

}  // namespace xgrad::kernels
