#pragma once

#include "../matrix.hpp"

namespace xgrad::kernels {

/// Up to how many multiplications loops are as fast as large_gemm: between small_product and
/// most_small_product.
std::size_t most_looped_product(bool trans_b);

/// C = alpha A B + beta C as gemm computes it, on all threads, where no side is 0: products of more than
/// most_looped_product() multiplications.
template <typename T>
void large_gemm(T alpha, const Matrix<const T>& a, const Matrix<const T>& b, T beta, const Matrix<T>& c);

}  // namespace xgrad::kernels
