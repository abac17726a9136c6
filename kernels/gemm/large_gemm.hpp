#pragma once

#include "../matrix.hpp"

namespace xgrad::kernels {

/// C = alpha A B + beta C as gemm computes it, on all threads, where no side is 0: products of more than
/// small_product multiplications.
template <typename T>
void large_gemm(T alpha, const Matrix<const T>& a, const Matrix<const T>& b, T beta, const Matrix<T>& c);

}  // namespace xgrad::kernels
