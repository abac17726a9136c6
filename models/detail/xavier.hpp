#pragma once

#include <cmath>
#include <cstddef>

namespace xgrad::detail {

/// Half the width of a weight's distribution: sqrt(6 / (fan_in + fan_out)) (Glorot and Bengio 2010), as
/// PyTorch's xavier_uniform_ rounds it.
inline double xavier_bound(std::size_t fan_in, std::size_t fan_out) {
  return std::sqrt(3.0) * std::sqrt(2.0 / static_cast<double>(fan_in + fan_out));
}

}  // namespace xgrad::detail
