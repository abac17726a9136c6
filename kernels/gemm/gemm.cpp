#include "gemm.hpp"

#include "../../base/detail/arrays/vectorized.hpp"
#include "../low_precision/bfloat16.hpp"
#include "few_rows.hpp"
#include "large_gemm.hpp"
#include "onednn_gemm.hpp"
#include "product_algorithm.hpp"
#include "product_pieces.hpp"
#include "small_gemm.hpp"

namespace xgrad::kernels {
namespace {

template <typename T>
void scale_rows(T beta, const Matrix<T>& c) {
  for (std::size_t i = 0; i < c.rows; ++i) {
    T* const row = c.data + i * c.stride;
    for (std::size_t j = 0; j < c.cols; ++j) row[j] = beta == T(0) ? T(0) : beta * row[j];
  }
}

/// By the matrix unit where there is one, else by vectors.
void rounded_gemm(float alpha, const Matrix<const float>& a, const Matrix<const float>& b, float beta,
                  const Matrix<float>& c) {
  constexpr std::size_t least_product = std::size_t{1} << 20;
  if (has_matrix_unit()) {
    return in_pieces<float>(least_product, onednn_rows, onednn_cols, a, b, c,
                            [=](const auto& some_a, const auto& some_b, const auto& some_c) {
                              onednn_gemm(alpha, some_a, some_b, beta, some_c);
                            });
  }
  in_pieces<float>(least_product, bfloat16_rows, bfloat16_cols, a, b, c,
                   [=](const auto& some_a, const auto& some_b, const auto& some_c) {
                     bfloat16_gemm(alpha, some_a, some_b, beta, some_c);
                   });
}

}  // namespace

template <typename T>
void gemm(std::type_identity_t<T> alpha, const Matrix<const T>& a, const Matrix<const T>& b,
          std::type_identity_t<T> beta, const Matrix<T>& c) {
  const std::size_t m = c.rows, n = c.cols, k = a.cols;
  if (m == 0 || n == 0) return;
  if (k == 0) return scale_rows(beta, c);
  const ProductAlgorithm algorithm = product_algorithm<T>({m, n, k, a.transposed, b.transposed});
  switch (algorithm) {
    case ProductAlgorithm::loops:
      return small_gemm<T>(alpha, a, b, beta, c);
    case ProductAlgorithm::few_rows:
      return few_rows_gemm<T>(alpha, a, b, beta, c);
    case ProductAlgorithm::bfloat16:
      if constexpr (std::is_same_v<T, float>) return rounded_gemm(alpha, a, b, beta, c);
      break;
    case ProductAlgorithm::tiles:
    case ProductAlgorithm::blas:
      break;
  }
  large_gemm<T>(algorithm == ProductAlgorithm::tiles, alpha, a, b, beta, c);
}

const char* instruction_set() {
#ifdef XGRAD_VERSIONS
  return __builtin_cpu_supports("avx512f") ? "AVX-512" : __builtin_cpu_supports("avx2") ? "AVX2" : "SSE2";
#else
  return "the compiler's choice";
#endif
}

#define XGRAD_INSTANTIATE(T) \
  template void gemm(T, const Matrix<const T>&, const Matrix<const T>&, T, const Matrix<T>&);

XGRAD_INSTANTIATE(float)
XGRAD_INSTANTIATE(double)

}  // namespace xgrad::kernels
