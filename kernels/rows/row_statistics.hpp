#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <limits>

#include "../lanes.hpp"

namespace xgrad::kernels {

/// The mean of a row and rstd = 1 / sqrt(variance + eps); the mean is 0 where rows are not centred. rest is
/// what the mean lacks: 0 unless the deviations are so small beside the mean that its rounding shows.
template <typename T>
struct RowStatistics {
  T mean, rstd, rest;
};

/// The mean of x - mean, or of x + residual - mean if residual is not null.
template <typename T>
T mean_deviation(const T* x, const T* residual, std::size_t n, T mean);

/// The statistics of a row whose deviations are small beside its mean, of which `mean` is a first value.
template <typename T>
RowStatistics<T> statistics_of_large_offset(const T* row, std::size_t n, T mean, T eps);

/// True if deviations are less than a sixteenth of the mean.
template <typename T>
XGRAD_INLINE bool has_large_offset(T mean, T rstd) {
  return std::abs(mean * rstd) > T(16);
}

/// The rest of the mean that RowStatistics has.
template <typename T>
XGRAD_INLINE T mean_rest(const T* row, std::size_t n, T mean, T rstd) {
  return has_large_offset(mean, rstd) ? mean_deviation<T>(row, nullptr, n, mean) : T(0);
}

/// The statistics of value(0), ..., value(n - 1) whose squares leave the range of T: those of their products
/// with a power of two. They are nan if a number is not finite. Out of line, as few rows need it.
template <typename T, typename Value>
[[gnu::noinline]] RowStatistics<T> scaled_statistics(std::size_t n, const Value& value, bool centred,
                                                     double eps) {
  double largest = 0;
  bool finite = true;
  for (std::size_t i = 0; i < n; ++i) {
    const double size = std::abs(static_cast<double>(value(i)));
    finite &= size <= std::numeric_limits<double>::max();
    largest = std::max(largest, size);
  }
  const T nan = std::numeric_limits<T>::quiet_NaN();
  if (!finite) return {nan, nan, T(0)};
  const double factor = largest > 0 ? std::ldexp(1.0, -std::ilogb(largest)) : 1;
  double mean = 0, variance = 0;
  for (std::size_t i = 0; centred && i < n; ++i) mean += static_cast<double>(value(i)) * factor;
  mean /= static_cast<double>(n);
  for (std::size_t i = 0; i < n; ++i) {
    const double deviation = static_cast<double>(value(i)) * factor - mean;
    variance += deviation * deviation;
  }
  variance /= static_cast<double>(n);
  const T rounded = static_cast<T>(mean / factor);
  const T rstd = static_cast<T>(factor / std::sqrt(variance + eps * factor * factor));
  const double rest = mean / factor - static_cast<double>(rounded);
  return {rounded, rstd, has_large_offset(rounded, rstd) ? static_cast<T>(rest) : T(0)};
}

/// True if the variance, or eps where there is none, has left the range of T.
template <typename T>
XGRAD_INLINE bool leaves_range(T rstd) {
  return !(rstd > T(0) && rstd <= std::numeric_limits<T>::max());
}

/// 1 / sqrt(the mean of (x - mean - rest)^2 + eps)
template <typename T>
XGRAD_INLINE T rstd_around(const T* row, std::size_t n, T mean, T rest, T eps) {
  const auto square = [row, mean, rest](std::size_t i)
                          XGRAD_INLINE_LAMBDA { return (row[i] - mean - rest) * (row[i] - mean - rest); };
  const T count = static_cast<T>(std::max<std::size_t>(n, 1));  // sums of nothing are 0
  return T(1) / std::sqrt(sum_lanes<T>(n, square) / count + eps);
}

template <typename T>
XGRAD_INLINE RowStatistics<T> row_statistics(const T* row, std::size_t n, bool centred, T eps) {
  const T count = static_cast<T>(std::max<std::size_t>(n, 1));
  const T mean =
      centred ? sum_lanes<T>(n, [row](std::size_t i) XGRAD_INLINE_LAMBDA { return row[i]; }) / count : T(0);
  const T rstd = rstd_around(row, n, mean, T(0), eps);
  if (n > 0 && leaves_range(rstd)) {
    return scaled_statistics<T>(
        n, [row](std::size_t i) { return row[i]; }, centred, static_cast<double>(eps));
  }
  if (!centred || !has_large_offset(mean, rstd)) return {mean, rstd, T(0)};
  return statistics_of_large_offset(row, n, mean, eps);
}

}  // namespace xgrad::kernels
