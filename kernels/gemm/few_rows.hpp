#pragma once

#include <cstddef>
#include <cstdint>

#include "../matrix.hpp"

// Products whose first factor has so few rows that reading the second takes longest: that is read once, in
// the order in which it lies in memory, and not packed.
namespace xgrad::kernels {

constexpr std::size_t most_few_rows = 8;

/// C = alpha A B + beta C as gemm computes it, for an A of up to most_few_rows rows that is not transposed.
/// The bits of a row of C do not depend on the other rows.
template <typename T>
void few_rows_gemm(T alpha, const Matrix<const T>& a, const Matrix<const T>& b, T beta, const Matrix<T>& c);

/// c (m, n) = x weight^T for x (m, k), m up to most_few_rows, and a weight (n, k) of bfloat16 numbers, the
/// upper halves of floats: the products are those of the floats.
void few_rows_bfloat16(const Matrix<const float>& x, const std::uint16_t* weight, const Matrix<float>& c);

}  // namespace xgrad::kernels
