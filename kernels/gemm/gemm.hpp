#pragma once

#include <cstddef>
#include <type_traits>

#include "../matrix.hpp"

namespace xgrad::kernels {

/// C = alpha A B + beta C for A (m, k), B (k, n) and C (m, n), which is not transposed. `beta` = 0 does not
/// read C; any size may be 0.
template <typename T>
void gemm(std::type_identity_t<T> alpha, const Matrix<const T>& a, const Matrix<const T>& b,
          std::type_identity_t<T> beta, const Matrix<T>& c);

/// The processor OpenBLAS chose its kernels for, such as "SkylakeX"; "unknown" with another BLAS.
const char* blas_core_name();

/// The instructions for which this library's own kernels are chosen, such as "AVX-512".
const char* instruction_set();

}  // namespace xgrad::kernels
