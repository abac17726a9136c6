#include "batch_norm.hpp"

#include <algorithm>
#include <cmath>

#include "../../base/detail/system/pieces.hpp"
#include "row_statistics.hpp"

namespace xgrad::kernels {
namespace {

constexpr std::size_t lanes = 64;

/// How many channels are computed side by side: their elements of a sample have a lane each. A long channel
/// has all lanes for itself.
std::size_t channels_at_once(std::size_t size) {
  return std::max<std::size_t>(1, lanes / std::max<std::size_t>(size, 1));
}

/// The elements of channels from `first` on, sample by sample.
template <typename T>
struct ChannelLines {
  XGRAD_INLINE ChannelLines(const BatchNormInput<T>& input, std::size_t first)
      : first(first),
        count(std::min(channels_at_once(input.size), input.channels - first)),
        length(count * input.size),
        batch(input.batch),
        stride(input.channels * input.size),
        begin(first * input.size) {}

  /// Calls visit(place, n) for n elements, at most one for each lane, which begin at this place of x.
  template <typename Visit>
  XGRAD_INLINE void for_each_part(const Visit& visit) const {
    for (std::size_t sample = 0; sample < batch; ++sample) {
      const std::size_t line = sample * stride + begin;
      for (std::size_t at = 0; at < length; at += lanes) visit(line + at, std::min(lanes, length - at));
    }
  }

  /// The sum over the lanes of a channel.
  XGRAD_INLINE double sum(const double* of_lanes, std::size_t channel) const {
    double total = 0;
    const std::size_t used = std::min(lanes, length), width = used / count;
    for (std::size_t l = channel * width; l < (channel + 1) * width; ++l) total += of_lanes[l];
    return total;
  }

  /// A number of each channel in its lanes.
  template <typename Number>
  XGRAD_INLINE void spread(T* to_lanes, const Number& number) const {
    const std::size_t used = std::min(lanes, length), width = used / count;
    for (std::size_t channel = 0; channel < count; ++channel)
      std::fill_n(to_lanes + channel * width, width, number(channel));
  }

  /// The offset of element i of a channel, of `size` in each sample.
  XGRAD_INLINE std::size_t offset(std::size_t channel, std::size_t i, std::size_t size) const {
    return i / size * stride + begin + channel * size + i % size;
  }

  /// Of a channel; 1 instead of none, whose sums are then 0.
  XGRAD_INLINE double elements() const {
    return std::max(1.0, static_cast<double>(batch) * static_cast<double>(length / count));
  }

  std::size_t first, count, length, batch, stride, begin;
};

/// True if the deviations of some channel are less than a sixteenth of its mean, whose rounding then shows.
template <typename T>
XGRAD_INLINE bool some_have_large_offset(const ChannelLines<T>& lines, const T* means, const T* rstds) {
  bool large = false;
  for (std::size_t c = 0; c < lines.count; ++c)
    large |= has_large_offset(means[lines.first + c], rstds[lines.first + c]);
  return large;
}

/// What the means of the channels lack by rounding. Out of line, as few channels have a large offset.
template <typename T>
[[gnu::noinline]] void rests_of_means(const ChannelLines<T>& lines, const T* x, const T* means,
                                      double* rests) {
  double sums[lanes] = {};
  T mean[lanes] = {};
  lines.spread(mean, [&](std::size_t c) { return means[lines.first + c]; });
  lines.for_each_part([&](std::size_t place, std::size_t n) XGRAD_INLINE_LAMBDA {
    for (std::size_t l = 0; l < n; ++l)
      sums[l] += static_cast<double>(x[place + l]) - static_cast<double>(mean[l]);
  });
  for (std::size_t c = 0; c < lines.count; ++c) rests[c] = lines.sum(sums, c) / lines.elements();
}

/// Two passes for the statistics, in double, and one for y. Bound by bandwidth.
XGRAD_KERNEL(void, batch_norm_lines,
             (const BatchNormInput<T>& input, double eps, const LayerNormStatistics<T>& statistics,
              T* variance, T* y, std::size_t first),
             (input, eps, statistics, variance, y, first)) {
  const ChannelLines<T> lines(input, first);
  const T* const x = input.x;
  T mean[lanes] = {}, scale[lanes] = {}, shift[lanes] = {};
  double sums[lanes] = {};
  lines.for_each_part([&](std::size_t place, std::size_t n) XGRAD_INLINE_LAMBDA {
    for (std::size_t l = 0; l < n; ++l) sums[l] += static_cast<double>(x[place + l]);
  });
  for (std::size_t c = 0; c < lines.count; ++c)
    statistics.mean[first + c] = static_cast<T>(lines.sum(sums, c) / lines.elements());
  lines.spread(mean, [&](std::size_t c) { return statistics.mean[first + c]; });
  std::fill_n(sums, lanes, 0.0);
  lines.for_each_part([&](std::size_t place, std::size_t n) XGRAD_INLINE_LAMBDA {
    for (std::size_t l = 0; l < n; ++l) {
      const double centred = static_cast<double>(x[place + l]) - static_cast<double>(mean[l]);
      sums[l] += centred * centred;
    }
  });
  bool large_offset = false;
  for (std::size_t c = 0; c < lines.count; ++c) {
    const double found = lines.sum(sums, c) / lines.elements();
    large_offset |= has_large_offset(static_cast<double>(statistics.mean[first + c]), 1 / std::sqrt(found));
    variance[first + c] = static_cast<T>(found);
  }
  double rests[lanes] = {};
  if (large_offset) {
    rests_of_means(lines, x, statistics.mean, rests);
    for (std::size_t c = 0; c < lines.count; ++c) {
      const double found = lines.sum(sums, c) / lines.elements() - rests[c] * rests[c];
      variance[first + c] = static_cast<T>(std::max(found, 0.0));
    }
  }
  for (std::size_t c = 0; c < lines.count; ++c) {
    T& rstd = statistics.rstd[first + c];
    rstd = static_cast<T>(1 / std::sqrt(static_cast<double>(variance[first + c]) + eps));
    if (!leaves_range(rstd) || input.batch * input.size == 0) continue;
    const auto scaled = scaled_statistics<T>(
        input.batch * input.size, [&](std::size_t i) { return x[lines.offset(c, i, input.size)]; }, true,
        eps);
    statistics.mean[first + c] = scaled.mean;
    rstd = scaled.rstd;
    rests[c] = static_cast<double>(scaled.rest);
    large_offset |= scaled.rest != 0;
  }
  lines.spread(mean, [&](std::size_t c) { return statistics.mean[first + c]; });
  lines.spread(scale, [&](std::size_t c) {
    return input.weight ? input.weight[first + c] * statistics.rstd[first + c] : statistics.rstd[first + c];
  });
  lines.spread(shift, [&](std::size_t c) { return input.bias ? input.bias[first + c] : T(0); });
  if (large_offset) {
    T rest[lanes] = {};
    lines.spread(rest, [&](std::size_t c) { return static_cast<T>(rests[c]); });
    lines.for_each_part([&](std::size_t place, std::size_t n) XGRAD_INLINE_LAMBDA {
      XGRAD_INDEPENDENT
      for (std::size_t l = 0; l < n; ++l)
        y[place + l] = (x[place + l] - mean[l] - rest[l]) * scale[l] + shift[l];
    });
    return;
  }
  lines.for_each_part([&](std::size_t place, std::size_t n) XGRAD_INLINE_LAMBDA {
    XGRAD_INDEPENDENT
    for (std::size_t l = 0; l < n; ++l) y[place + l] = (x[place + l] - mean[l]) * scale[l] + shift[l];
  });
}

XGRAD_KERNEL(void, batch_norm_grad_lines,
             (const T* dy, const BatchNormInput<T>& input, const LayerNormStatistics<const T>& statistics,
              const LayerNormGrads<T>& grads, std::size_t first),
             (dy, input, statistics, grads, first)) {
  const ChannelLines<T> lines(input, first);
  const T* const x = input.x;
  T mean[lanes] = {}, scale[lanes] = {}, dy_mean[lanes] = {}, slope[lanes] = {};
  lines.spread(mean, [&](std::size_t c) { return statistics.mean[first + c]; });
  double sums[lanes] = {}, products[lanes] = {}, rests[lanes] = {};
  lines.for_each_part([&](std::size_t place, std::size_t n) XGRAD_INLINE_LAMBDA {
    for (std::size_t l = 0; l < n; ++l) {
      const double g = static_cast<double>(dy[place + l]);
      sums[l] += g;
      products[l] += g * (static_cast<double>(x[place + l]) - static_cast<double>(mean[l]));
    }
  });
  const bool large_offset = some_have_large_offset(lines, statistics.mean, statistics.rstd);
  if (large_offset) rests_of_means(lines, x, statistics.mean, rests);
  // the sum of dy xhat
  const auto product = [&](std::size_t c) {
    return (lines.sum(products, c) - rests[c] * lines.sum(sums, c)) *
           static_cast<double>(statistics.rstd[first + c]);
  };
  for (std::size_t c = 0; c < lines.count; ++c) {
    if (grads.dbias) grads.dbias[first + c] = static_cast<T>(lines.sum(sums, c));
    if (grads.dweight) grads.dweight[first + c] = static_cast<T>(product(c));
  }
  if (!grads.dx) return;
  lines.spread(scale, [&](std::size_t c) {
    return input.weight ? input.weight[first + c] * statistics.rstd[first + c] : statistics.rstd[first + c];
  });
  lines.spread(dy_mean, [&](std::size_t c) { return static_cast<T>(lines.sum(sums, c) / lines.elements()); });
  lines.spread(slope, [&](std::size_t c) {
    return static_cast<T>(product(c) / lines.elements()) * statistics.rstd[first + c];
  });
  T* const dx = grads.dx;
  if (large_offset) {
    T rest[lanes] = {};
    lines.spread(rest, [&](std::size_t c) { return static_cast<T>(rests[c]); });
    lines.for_each_part([&](std::size_t place, std::size_t n) XGRAD_INLINE_LAMBDA {
      XGRAD_INDEPENDENT
      for (std::size_t l = 0; l < n; ++l)
        dx[place + l] =
            scale[l] * (dy[place + l] - dy_mean[l] - (x[place + l] - mean[l] - rest[l]) * slope[l]);
    });
    return;
  }
  lines.for_each_part([&](std::size_t place, std::size_t n) XGRAD_INLINE_LAMBDA {
    XGRAD_INDEPENDENT
    for (std::size_t l = 0; l < n; ++l)
      dx[place + l] = scale[l] * (dy[place + l] - dy_mean[l] - (x[place + l] - mean[l]) * slope[l]);
  });
}

/// Calls compute(first) for the channels side by side, from each first one on.
template <typename T, typename Compute>
void for_each_channels(const BatchNormInput<T>& input, const Compute& compute) {
  const std::size_t at_once = channels_at_once(input.size);
  parallel_pieces(ceil_div(input.channels, at_once), 4 * input.batch * input.size * at_once,
                  [&](std::size_t begin, std::size_t end) {
                    for (; begin < end; ++begin) compute(begin * at_once);
                  });
}

}  // namespace

template <typename T>
void batch_norm(const BatchNormInput<T>& input, std::type_identity_t<T> eps,
                const LayerNormStatistics<T>& statistics, T* variance, T* y) {
  for_each_channels(input, [&](std::size_t first) {
    batch_norm_lines(input, static_cast<double>(eps), statistics, variance, y, first);
  });
}

template <typename T>
void batch_norm_grad(const T* dy, const BatchNormInput<T>& input,
                     const LayerNormStatistics<const T>& statistics, const LayerNormGrads<T>& grads) {
  for_each_channels(input,
                    [&](std::size_t first) { batch_norm_grad_lines(dy, input, statistics, grads, first); });
}

#define XGRAD_INSTANTIATE(T)                                                                             \
  template void batch_norm(const BatchNormInput<T>&, T, const LayerNormStatistics<T>&, T*, T*);          \
  template void batch_norm_grad(const T*, const BatchNormInput<T>&, const LayerNormStatistics<const T>&, \
                                const LayerNormGrads<T>&);

XGRAD_INSTANTIATE(float)
XGRAD_INSTANTIATE(double)

}  // namespace xgrad::kernels
