#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>

#include "../lanes.hpp"

namespace xgrad::kernels {

/// The mean of a row and rstd = 1 / sqrt(variance + eps); the mean is 0 where rows are not centred.
template <typename T>
struct RowStatistics {
  T mean, rstd;
};

template <typename T>
XGRAD_INLINE RowStatistics<T> row_statistics(const T* row, std::size_t n, bool centred, T eps) {
  const T count = static_cast<T>(std::max<std::size_t>(n, 1));  // sums of nothing are 0
  const T mean =
      centred ? sum_lanes<T>(n, [row](std::size_t i) XGRAD_INLINE_LAMBDA { return row[i]; }) / count : T(0);
  const auto square = [row, mean](std::size_t i)
                          XGRAD_INLINE_LAMBDA { return (row[i] - mean) * (row[i] - mean); };
  const T variance = sum_lanes<T>(n, square) / count;
  // 0 times the variance is nan where that is infinite: 1 / infinity would hide the overflow.
  return {mean, T(1) / std::sqrt(variance + eps) + T(0) * variance};
}

}  // namespace xgrad::kernels
