#pragma once

#include "../arrays/vectorized.hpp"

namespace xgrad::kernels {

/// std::bit_cast, which libc++ lacks before version 14.
template <typename To, typename From>
XGRAD_INLINE constexpr To bit_cast(const From& from) {
  return __builtin_bit_cast(To, from);
}

}  // namespace xgrad::kernels
