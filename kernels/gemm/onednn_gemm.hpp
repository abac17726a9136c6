#pragma once

#include <cstddef>

#include "../../base/detail/product_precision.hpp"
#include "../matrix.hpp"

// Products of float numbers that stand as one bfloat16 number each, or as the sum of two, by oneDNN: its
// kernels use the matrix units of processors that have one (Intel's AMX), and run on every other.
namespace xgrad::kernels {

/// True if the library was built with oneDNN.
bool has_onednn();

/// True if oneDNN has a matrix unit for bfloat16 numbers to use here.
bool has_matrix_unit();

/// onednn_gemm computes C in tiles of as many rows and columns; pieces that begin at their borders have the
/// bits of the whole.
constexpr std::size_t onednn_rows = 128, onednn_cols = 1024;

/// C = alpha A B + beta C as gemm computes it, on one thread, where `parts` bfloat16 numbers stand for each
/// element of A and B, 1 or 2 (of two, the product of the small ones is left out), and the products are added
/// in float. An infinite element of A or B gives nan with 2. Needs has_onednn(); what oneDNN throws, a
/// std::exception, comes out.
void onednn_gemm(detail::Parts parts, float alpha, const Matrix<const float>& a, const Matrix<const float>& b,
                 float beta, const Matrix<float>& c);

}  // namespace xgrad::kernels
