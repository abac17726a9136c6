#pragma once

#include <cmath>
#include <cstddef>

namespace xgrad::detail {

/// Half the width of a weight's initial distribution: 1 / sqrt(fan_in), as PyTorch rounds it.
inline double kaiming_bound(std::size_t fan_in) {
  const double slope = std::sqrt(5.0), gain = std::sqrt(2 / (1 + slope * slope));
  return std::sqrt(3.0) * (gain / std::sqrt(static_cast<double>(fan_in)));
}

}  // namespace xgrad::detail
