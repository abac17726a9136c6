#pragma once

#include "../../ops/attention/self_attention.hpp"
#include "../layers/linear.hpp"

namespace xgrad::detail {

/// What fused attention takes of a layer.
template <class T>
Projection<T> projection(const Linear<T>& linear) {
  const std::optional<Int8Weight>& integers = linear.int8_weight();
  return {linear.weight(), linear.bias(), integers ? &*integers : nullptr};
}

}  // namespace xgrad::detail
