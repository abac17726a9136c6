#include "group_norm.hpp"

#include "../../base/detail/system/pieces.hpp"
#include "reduce.hpp"
#include "row_statistics.hpp"

namespace xgrad::kernels {
namespace {

/// Three loops over a row, which leaves memory once: bound by bandwidth.
XGRAD_PARALLEL_KERNEL(normalize_groups, rows, 8 * input.channels * input.size,
                      (const GroupNormInput<T>& input, std::type_identity_t<T> eps,
                       const LayerNormStatistics<T>& statistics, T* y, std::size_t rows),
                      (input, eps, statistics, y, rows)) {
  const std::size_t size = input.size, length = input.channels * size;
  for (std::size_t r = begin; r < end; ++r) {
    const T* const x = input.x + r * length;
    const auto [mean, rstd, rest] = row_statistics(x, length, true, eps);
    statistics.mean[r] = mean;
    statistics.rstd[r] = rstd;
    const std::size_t first = r % input.groups * input.channels;
    for (std::size_t c = 0; c < input.channels; ++c) {
      const T* const from = x + c * size;
      T* const to = y + r * length + c * size;
      const T centre = mean, remainder = rest, scale = input.weight ? rstd * input.weight[first + c] : rstd,
              shift = input.bias ? input.bias[first + c] : T(0);
      XGRAD_INDEPENDENT
      for (std::size_t i = 0; i < size; ++i) to[i] = (from[i] - centre - remainder) * scale + shift;
    }
  }
}

/// The sums over a channel of a row, of dy xhat and of dy, and dx from those of all its channels. Bound by
/// bandwidth.
XGRAD_PARALLEL_KERNEL(normalize_groups_grad, rows, 8 * input.channels * input.size,
                      (const T* dy, const GroupNormInput<T>& input,
                       const LayerNormStatistics<const T>& statistics, T* weight_sums, T* bias_sums, T* dx,
                       std::size_t rows),
                      (dy, input, statistics, weight_sums, bias_sums, dx, rows)) {
  const std::size_t channels = input.channels, size = input.size, length = channels * size;
  for (std::size_t r = begin; r < end; ++r) {
    const T *const x = input.x + r * length, *const g = dy + r * length;
    const T* const weight = input.weight ? input.weight + r % input.groups * channels : nullptr;
    const T mean = statistics.mean[r], rstd = statistics.rstd[r], rest = mean_rest(x, length, mean, rstd);
    double sum = 0, product = 0;
    for (std::size_t c = 0; c < channels; ++c) {
      const T *const from = x + c * size, *const of_from = g + c * size;
      const T of_weight = rstd * sum_lanes<T>(size, [=](std::size_t i) XGRAD_INLINE_LAMBDA {
                            return of_from[i] * (from[i] - mean - rest);
                          });
      const T of_bias = sum_lanes<T>(size, [=](std::size_t i) XGRAD_INLINE_LAMBDA { return of_from[i]; });
      weight_sums[r * channels + c] = of_weight;
      bias_sums[r * channels + c] = of_bias;
      const double factor = weight ? static_cast<double>(weight[c]) : 1;
      product += factor * static_cast<double>(of_weight);
      sum += factor * static_cast<double>(of_bias);
    }
    if (!dx) continue;
    const double count = static_cast<double>(length);
    const T g_mean = static_cast<T>(sum / count), slope = rstd * static_cast<T>(product / count);
    for (std::size_t c = 0; c < channels; ++c) {
      const T *const from = x + c * size, *const of_from = g + c * size;
      T* const to = dx + r * length + c * size;
      const T factor = weight ? weight[c] : T(1);
      XGRAD_INDEPENDENT
      for (std::size_t i = 0; i < size; ++i)
        to[i] = rstd * (of_from[i] * factor - g_mean - (from[i] - mean - rest) * slope);
    }
  }
}

}  // namespace

template <typename T>
void group_norm_rows(const GroupNormInput<T>& input, std::type_identity_t<T> eps,
                     const LayerNormStatistics<T>& statistics, T* y) {
  normalize_groups(input, eps, statistics, y, input.rows);
}

template <typename T>
void group_norm_grad_rows(const T* dy, const GroupNormInput<T>& input,
                          const LayerNormStatistics<const T>& statistics, const LayerNormGrads<T>& grads,
                          T* scratch) {
  const std::size_t samples = input.rows / input.groups, channels = input.groups * input.channels;
  T* const bias_sums = scratch + input.rows * input.channels;
  normalize_groups_grad(dy, input, statistics, scratch, bias_sums, grads.dx, input.rows);
  if (grads.dweight) sum_middle(scratch, 1, samples, channels, grads.dweight);
  if (grads.dbias) sum_middle(bias_sums, 1, samples, channels, grads.dbias);
}

#define XGRAD_INSTANTIATE(T)                                                                     \
  template void group_norm_rows(const GroupNormInput<T>&, T, const LayerNormStatistics<T>&, T*); \
  template void group_norm_grad_rows(const T*, const GroupNormInput<T>&,                         \
                                     const LayerNormStatistics<const T>&, const LayerNormGrads<T>&, T*);

XGRAD_INSTANTIATE(float)
XGRAD_INSTANTIATE(double)

}  // namespace xgrad::kernels
