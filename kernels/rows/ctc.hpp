#pragma once

#include <cstddef>
#include <cstdint>

namespace xgrad::kernels {

/// The classes that the paths of each of N samples go through: its labels with a blank around each, `width`
/// places a sample, of which the first 2 target_lengths[n] + 1 count.
struct CtcPaths {
  const std::int64_t* classes;  ///< (N, width)
  const std::int64_t* input_lengths;
  const std::int64_t* target_lengths;
  std::size_t width;
  std::int64_t blank;
};

/// Of log_probs (steps, samples, cols): alpha (samples, steps, width), the logarithm of the probability of
/// all beginnings of paths that end at a place in a step, less the largest of the step, and losses (samples),
/// -ln of that of whole paths.
template <typename T>
void ctc(const CtcPaths& paths, const T* log_probs, T* alpha, T* losses, std::size_t steps,
         std::size_t samples, std::size_t cols);

/// dlog_probs = -dlosses[n] times the probability, among the paths of sample n, of those at the class; nan
/// where there is no path, or 0 with `zero_infinity`.
template <typename T>
void ctc_grad(const CtcPaths& paths, const T* log_probs, const T* alpha, const T* losses, const T* dlosses,
              bool zero_infinity, T* dlog_probs, std::size_t steps, std::size_t samples, std::size_t cols);

}  // namespace xgrad::kernels
