#include "product_algorithm.hpp"

#include <algorithm>
#include <limits>
#include <type_traits>

#include "../../base/detail/product_precision.hpp"
#include "../low_precision/bfloat16.hpp"
#include "few_rows.hpp"
#include "large_gemm.hpp"
#include "small_gemm.hpp"

namespace xgrad::kernels {
namespace {

/// Up to how many multiplications loops are as fast as large_gemm. OpenBLAS asks a table of buffers that
/// threads share for memory to pack into, unless it has a kernel that does not pack: with AVX-512, but for a
/// small transposed b.
std::size_t max_looped_product(bool trans_b) {
  switch (gemm_backend()) {
    case GemmBackend::plain:
      return looped_product;
    case GemmBackend::blas:
      return most_small_product;
    case GemmBackend::unpacked_blas:
      break;
  }
  return trans_b ? 2 * looped_product : looped_product;
}

/// Smaller second factors stay in the caches, whatever reads them.
bool has_few_rows(const ProductShape& shape) {
  constexpr std::size_t min_elements = std::size_t{1} << 17;
  return shape.m <= most_few_rows && shape.n * shape.k >= min_elements && !shape.trans_a;
}

/// True if the product is large enough to pay for rounding its operands.
bool pays_to_round(const ProductShape& shape) {
  constexpr std::size_t min_side = 16, min_product = std::size_t{1} << 18;
  return std::min({shape.m, shape.n, shape.k}) >= min_side && shape.m * shape.n * shape.k >= min_product;
}

/// Up to how many multiplications tiles are faster than one call that packs: AMD's processors multiply faster
/// in tiles at any size, Intel's in one call from some size on.
std::size_t max_tiled_product() {
  constexpr std::size_t any = std::numeric_limits<std::size_t>::max();
#if defined(__x86_64__)
  static const std::size_t max_product = __builtin_cpu_is("intel") ? std::size_t{1} << 28 : any;
  return max_product;
#else
  return any;
#endif
}

/// True where tiles are faster than one call: not where that call is a tile itself.
bool pays_to_tile(const ProductShape& shape) {
  constexpr std::size_t min_side = 16, unpacked = 1000000;
  const auto [m, n, k, trans_a, trans_b] = shape;
  return std::min({m, n, k}) >= min_side && (trans_b ? m >= 2 * min_side : m * n * k > unpacked) &&
         m * n * k <= max_tiled_product() && gemm_backend() == GemmBackend::unpacked_blas;
}

}  // namespace

template <typename T>
ProductAlgorithm larger_product_algorithm(const ProductShape& shape) {
  if (is_small(shape, max_looped_product(shape.trans_b))) return ProductAlgorithm::loops;
  if (has_few_rows(shape)) return ProductAlgorithm::few_rows;
  if constexpr (std::is_same_v<T, float>) {
    if (detail::products_may_be_rounded() && bfloat16_is_faster() && pays_to_round(shape))
      return ProductAlgorithm::bfloat16;
  }
  return pays_to_tile(shape) ? ProductAlgorithm::tiles : ProductAlgorithm::blas;
}

template ProductAlgorithm larger_product_algorithm<float>(const ProductShape&);
template ProductAlgorithm larger_product_algorithm<double>(const ProductShape&);

}  // namespace xgrad::kernels
