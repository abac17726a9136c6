#pragma once

#include <cstddef>
#include <cstdint>

#include "../../base/detail/bytes/bit_cast.hpp"
#include "../matrix.hpp"

// Products of float numbers that are rounded to bfloat16 first: 8 bits of each number's 24 are kept, so that
// processors with instructions for it multiply several at once.
namespace xgrad::kernels {

/// The nearest bfloat16, ties to even, in the upper half; nan stays nan.
XGRAD_INLINE std::uint32_t rounded_bits(float x) {
  const auto bits = bit_cast<std::uint32_t>(x);
  return (x == x ? bits + 0x7fff + (bits >> 16 & 1) : bits | 0x00400000) & 0xffff0000;
}

/// The value of each bfloat16, the upper half of a float.
template <typename T>
void from_bfloat16(const std::uint16_t* bits, T* values, std::size_t n);

/// True if this processor has instructions for them: AVX512-BF16.
bool has_bfloat16_instructions();

/// True if this processor multiplies bfloat16 numbers faster than floats: by a matrix unit, or, of AMD, by
/// these instructions, which Intel's processors execute at half the rate of those for floats.
bool bfloat16_is_faster();

/// bfloat16_gemm computes C in tiles of as many rows and columns; pieces that begin at their borders have the
/// bits of the whole.
constexpr std::size_t bfloat16_rows = 12, bfloat16_cols = 32;

/// C = alpha A B + beta C as gemm computes it, on one thread, where each element of A and B is rounded to the
/// nearest bfloat16 and the products are added in float. The instructions take numbers below the normal ones,
/// 1.2e-38, for 0; plain loops do not.
void bfloat16_gemm(float alpha, const Matrix<const float>& a, const Matrix<const float>& b, float beta,
                   const Matrix<float>& c, bool by_instructions = has_bfloat16_instructions());

}  // namespace xgrad::kernels
