#include "row_statistics.hpp"

namespace xgrad::kernels {

XGRAD_KERNEL(T, mean_deviation, (const T* x, const T* residual, std::size_t n, T mean),
             (x, residual, n, mean)) {
  const auto deviation = [x, mean](std::size_t i) XGRAD_INLINE_LAMBDA { return x[i] - mean; };
  const auto of_sum = [x, residual, mean](std::size_t i)
                          XGRAD_INLINE_LAMBDA { return (x[i] + residual[i]) - mean; };
  return (residual ? sum_lanes<T>(n, of_sum) : sum_lanes<T>(n, deviation)) / static_cast<T>(n);
}

XGRAD_KERNEL(RowStatistics<T>, statistics_of_large_offset, (const T* row, std::size_t n, T mean, T eps),
             (row, n, mean, eps)) {
  mean += mean_deviation<T>(row, nullptr, n, mean);
  const T rstd = rstd_around(row, n, mean, mean_deviation<T>(row, nullptr, n, mean), eps);
  return {mean, rstd, mean_rest(row, n, mean, rstd)};
}

}  // namespace xgrad::kernels
