#pragma once

#include <cmath>
#include <cstdint>

#include "../../../base/detail/bytes/bit_cast.hpp"

// Not installed: numbers of 16 bits.
namespace xgrad::pretrained::detail {

/// The nearest bfloat16 of a finite number, ties to even.
inline std::uint16_t bfloat16_of(float x) {
  const auto bits = kernels::bit_cast<std::uint32_t>(x);
  return static_cast<std::uint16_t>((bits + 0x7fff + (bits >> 16 & 1)) >> 16);
}

/// Whether the nearest half is finite.
inline bool fits_half(float x) { return std::abs(x) < 65520; }

/// The nearest IEEE 754 half of a number that fits, ties to even.
inline std::uint16_t half_of(float x) {
  constexpr int bias = 15, digits = 10, smallest = -14;
  const float size = std::abs(x);
  const int exponent = size < std::ldexp(1.0F, smallest) ? smallest : std::ilogb(size);
  // The hidden 1 of a normal number adds to the field of the exponent, as a digit carried by rounding does.
  const auto significand = static_cast<int>(std::nearbyint(std::ldexp(size, digits - exponent)));
  const int bits = significand + ((exponent + bias - 1) << digits);
  return static_cast<std::uint16_t>(bits | (std::signbit(x) ? 0x8000 : 0));
}

}  // namespace xgrad::pretrained::detail
