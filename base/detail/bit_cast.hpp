#pragma once

#include "vectorized.hpp"

namespace xgrad::kernels {

/// std::bit_cast, which libc++ has from version 14 on.
template <typename To, typename From>
XGRAD_INLINE constexpr To bit_cast(const From& from) {
  return __builtin_bit_cast(To, from);
}

}  // namespace xgrad::kernels
