#pragma once

#include <cstddef>

#include "../matrix.hpp"

// Products of float numbers that are rounded to bfloat16 first, by oneDNN: its kernels use the matrix units
// of processors that have one (Intel's AMX), and run on every other.
namespace xgrad::kernels {

/// True if the library was built with oneDNN.
bool has_onednn();

/// True if oneDNN has a matrix unit for bfloat16 numbers to use here.
bool has_matrix_unit();

/// onednn_gemm computes C in tiles of as many rows and columns; pieces that begin at their borders have the
/// bits of the whole.
constexpr std::size_t onednn_rows = 128, onednn_cols = 1024;

/// bfloat16_gemm by oneDNN, on one thread. Needs has_onednn(); what oneDNN throws, a std::exception, comes
/// out.
void onednn_gemm(float alpha, const Matrix<const float>& a, const Matrix<const float>& b, float beta,
                 const Matrix<float>& c);

}  // namespace xgrad::kernels
