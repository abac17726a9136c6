#pragma once

#include "../../pointwise/arithmetic.hpp"
#include "../reductions.hpp"

namespace xgrad::detail {

/// x minus its mean over dims. Taken twice, as a mean that was rounded is off where x has a large offset.
template <class T>
Variable<T> deviations(const Variable<T>& x, const Dims& dims) {
  const Variable<T> from_rounded = x - mean(x, dims, {.keepdim = true});
  return from_rounded - mean(from_rounded, dims, {.keepdim = true});
}

}  // namespace xgrad::detail
