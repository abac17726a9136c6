#pragma once

#include <cstdint>

#include "../../base/detail/bytes/bit_cast.hpp"

// Not installed.

namespace xgrad::detail {

/// half_to_float without branches, for loops.
XGRAD_INLINE float float_of_half(std::uint16_t bits) {
  constexpr std::uint32_t bias = (127 - 15) << 23;
  const std::uint32_t exponent = bits & 0x7c00U;
  const float subnormal = static_cast<float>(bits & 0x3ff) * 0x1p-24F;
  const std::uint32_t normal = ((bits & 0x7fffU) << 13) + bias + (exponent == 0x7c00 ? bias : 0);
  const std::uint32_t magnitude = exponent == 0 ? kernels::bit_cast<std::uint32_t>(subnormal) : normal;
  return kernels::bit_cast<float>((bits & 0x8000U) << 16 | magnitude);
}

}  // namespace xgrad::detail
