#pragma once

#include <cstddef>
#include <cstdint>

#include "../matrix.hpp"
#include "register_tile.hpp"

namespace xgrad::kernels {

/// The largest number of multiplications, those of the rows with them that copying a transposed group of
/// columns takes as long as.
constexpr std::size_t most_small_product = 10240, rows_per_copy = 4;

/// C = alpha A B + beta C as gemm computes it, for products of up to most_small_product.
template <typename T>
void small_gemm(T alpha, const Matrix<const T>& a, const Matrix<const T>& b, T beta, const Matrix<T>& c);

}  // namespace xgrad::kernels
