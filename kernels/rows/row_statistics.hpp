#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>

#include "../lanes.hpp"

namespace xgrad::kernels {

/// The mean of a row and rstd = 1 / sqrt(variance + eps); the mean is 0 where rows are not centred. rest is
/// what the mean lacks: 0 unless the deviations are so small beside the mean that its rounding shows.
template <typename T>
struct RowStatistics {
  T mean, rstd, rest;
};

/// The mean of x - mean.
template <typename T>
XGRAD_INLINE T mean_deviation(const T* row, std::size_t n, T mean) {
  return sum_lanes<T>(n, [row, mean](std::size_t i) XGRAD_INLINE_LAMBDA { return row[i] - mean; }) /
         static_cast<T>(n);
}

/// True if deviations are less than a sixteenth of the mean.
template <typename T>
XGRAD_INLINE bool has_large_offset(T mean, T rstd) {
  return std::abs(mean * rstd) > T(16);
}

/// The rest of the mean that RowStatistics has.
template <typename T>
XGRAD_INLINE T mean_rest(const T* row, std::size_t n, T mean, T rstd) {
  return has_large_offset(mean, rstd) ? mean_deviation(row, n, mean) : T(0);
}

template <typename T>
XGRAD_INLINE RowStatistics<T> row_statistics(const T* row, std::size_t n, bool centred, T eps) {
  const T count = static_cast<T>(std::max<std::size_t>(n, 1));  // sums of nothing are 0
  T mean =
      centred ? sum_lanes<T>(n, [row](std::size_t i) XGRAD_INLINE_LAMBDA { return row[i]; }) / count : T(0);
  const auto rstd_around = [row, n, count, eps](T mean, T rest) XGRAD_INLINE_LAMBDA {
    const auto square = [row, mean, rest](std::size_t i)
                            XGRAD_INLINE_LAMBDA { return (row[i] - mean - rest) * (row[i] - mean - rest); };
    const T variance = sum_lanes<T>(n, square) / count;
    // 0 times the variance is nan where that is infinite: 1 / infinity would hide the overflow.
    return T(1) / std::sqrt(variance + eps) + T(0) * variance;
  };
  T rstd = rstd_around(mean, T(0));
  if (!centred || !has_large_offset(mean, rstd)) return {mean, rstd, T(0)};
  mean += mean_deviation(row, n, mean);
  rstd = rstd_around(mean, mean_deviation(row, n, mean));
  return {mean, rstd, mean_rest(row, n, mean, rstd)};
}

}  // namespace xgrad::kernels
