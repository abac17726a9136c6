#pragma once

#include "matrix.hpp"

namespace xgrad::kernels {

/// True for products that loops have done before larger ones have chosen and packed.
bool is_small(bool trans_b, std::size_t m, std::size_t n, std::size_t k);

/// C = alpha A B + beta C as gemm computes it, where that is small.
template <typename T>
void small_gemm(T alpha, const Matrix<const T>& a, const Matrix<const T>& b, T beta, const Matrix<T>& c);

}  // namespace xgrad::kernels
