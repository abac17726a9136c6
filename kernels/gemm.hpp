#pragma once

#include <cstddef>
#include <type_traits>

namespace xgrad::kernels {

/// C = alpha op(A) op(B) + beta C, row-major, with leading dimensions.
/// op(A) is (m, k): A is (m, k), or (k, m) if `trans_a`. op(B) is (k, n): B is (k, n), or (n, k) if
/// `trans_b`. `beta` = 0 does not read C; any size may be 0.
template <typename T>
void gemm(bool trans_a, bool trans_b, std::size_t m, std::size_t n, std::size_t k,
          std::type_identity_t<T> alpha, const T* a, std::size_t lda, const T* b, std::size_t ldb,
          std::type_identity_t<T> beta, T* c, std::size_t ldc);

/// The processor OpenBLAS chose its kernels for, such as "SkylakeX"; "unknown" with another BLAS.
const char* blas_core_name();

}  // namespace xgrad::kernels
