#include "gemm.hpp"

#include "../../base/detail/arrays/vectorized.hpp"
#include "../../base/detail/product_precision.hpp"
#include "../low_precision/bfloat16.hpp"
#include "few_rows.hpp"
#include "large_gemm.hpp"
#include "onednn_gemm.hpp"
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
  // loops, the second factor read once, bfloat16 numbers where these are asked for, or BLAS, in tiles where
  // these are faster than one call
  const auto is_looped = [&](std::size_t most) { return is_small(b.transposed, m, n, k, most); };
  if (is_looped(small_product)) return small_gemm<T>(alpha, a, b, beta, c);  // known at once
  if (is_looped(most_looped_product(b.transposed))) return small_gemm<T>(alpha, a, b, beta, c);
  if (has_few_rows(m, n, k) && !a.transposed) return few_rows_gemm<T>(alpha, a, b, beta, c);
  if constexpr (std::is_same_v<T, float>) {
    if (detail::products_may_be_rounded() && bfloat16_is_faster() && pays_to_round(m, n, k))
      return rounded_gemm(alpha, a, b, beta, c);
  }
  large_gemm<T>(alpha, a, b, beta, c);
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
