#include "ctc.hpp"

#include <algorithm>
#include <limits>
#include <vector>

#include "../../base/detail/system/pieces.hpp"
#include "../pointwise/vectorized_math.hpp"

namespace xgrad::kernels {

namespace {

template <typename T>
inline constexpr T minus_infinity = -std::numeric_limits<T>::infinity();

/// log(e^a + e^b + e^c) without overflow; -inf of three times -inf.
template <typename T>
XGRAD_INLINE T log_sum(T a, T b, T c) {
  const T two = a < b ? b : a, largest = two < c ? c : two;
  const T shift = largest == minus_infinity<T> ? T(0) : largest;
  return shift + vectorized::log(vectorized::exp(a - shift) + vectorized::exp(b - shift) +
                                 vectorized::exp(c - shift));
}

/// The places of a sample, and what a step of its paths reads.
template <typename T>
struct CtcSample {
  CtcSample(const CtcPaths& paths, std::size_t n)
      : classes(paths.classes + n * paths.width),
        places(2 * static_cast<std::size_t>(paths.target_lengths[n]) + 1),
        steps(static_cast<std::size_t>(paths.input_lengths[n])),
        skip(places + 2, minus_infinity<T>),
        emitted(places) {
    for (std::size_t s = 2; s < places; ++s)
      if (classes[s] != paths.blank && classes[s] != classes[s - 2]) skip[s] = T(0);
  }

  const std::int64_t* classes;
  std::size_t places, steps;
  std::vector<T> skip;     // 0 where a path may come from two places before, else -inf
  std::vector<T> emitted;  // log_probs of the places in a step
};

/// Subtracts the largest, which is returned, from all; 0 if all are -inf.
template <typename T>
XGRAD_INLINE T take_largest(T* x, std::size_t n) {
  T largest = minus_infinity<T>;
  for (std::size_t i = 0; i < n; ++i) largest = largest < x[i] ? x[i] : largest;
  if (largest == minus_infinity<T>) return T(0);
  for (std::size_t i = 0; i < n; ++i) x[i] -= largest;
  return largest;
}

template <typename T>
XGRAD_INLINE void emit(CtcSample<T>& sample, const T* log_probs) {
  for (std::size_t s = 0; s < sample.places; ++s) sample.emitted[s] = log_probs[sample.classes[s]];
}

}  // namespace

/// Bound by exponentials and logarithms, of which a place has four.
XGRAD_PARALLEL_KERNEL(ctc, samples, 8 * steps * paths.width,
                      (const CtcPaths& paths, const T* log_probs, T* alpha, T* losses, std::size_t steps,
                       std::size_t samples, std::size_t cols),
                      (paths, log_probs, alpha, losses, steps, samples, cols)) {
  for (std::size_t n = begin; n < end; ++n) {
    CtcSample<T> sample(paths, n);
    const std::size_t places = sample.places;
    T* const first = alpha + n * steps * paths.width;
    std::fill_n(first, steps * paths.width, minus_infinity<T>);
    std::vector<T> before(places + 2, minus_infinity<T>);  // two more in front
    double total = 0;                                      // of what was subtracted
    const T *const skip = sample.skip.data(), *const emitted = sample.emitted.data();
    for (std::size_t t = 0; t < sample.steps; ++t) {
      emit(sample, log_probs + (t * samples + n) * cols);
      T *const row = first + t * paths.width, *const last = before.data();
      if (t == 0) {
        row[0] = emitted[0];
        if (places > 1) row[1] = emitted[1];
      } else {
        XGRAD_INDEPENDENT
        for (std::size_t s = 0; s < places; ++s)
          row[s] = log_sum(last[s + 2], last[s + 1], last[s] + skip[s]) + emitted[s];
      }
      total += take_largest(row, places);
      std::copy_n(row, places, last + 2);
    }
    if (sample.steps == 0) {
      losses[n] = places == 1 ? T(0) : -minus_infinity<T>;
    } else {
      const T end =
          log_sum(before[places + 1], places > 1 ? before[places] : minus_infinity<T>, minus_infinity<T>);
      losses[n] = static_cast<T>(-(total + end));
    }
  }
}

/// Bound by exponentials and logarithms, of which a place has five.
XGRAD_PARALLEL_KERNEL(ctc_grad, samples, 10 * steps * paths.width,
                      (const CtcPaths& paths, const T* log_probs, const T* alpha, const T* losses,
                       const T* dlosses, bool zero_infinity, T* dlog_probs, std::size_t steps,
                       std::size_t samples, std::size_t cols),
                      (paths, log_probs, alpha, losses, dlosses, zero_infinity, dlog_probs, steps, samples,
                       cols)) {
  for (std::size_t n = begin; n < end; ++n) {
    CtcSample<T> sample(paths, n);
    const std::size_t places = sample.places;
    // The logarithms of the probabilities of the rests of paths, less the largest; two more places behind
    std::vector<T> later(places + 2, minus_infinity<T>), rest(places), both(places);
    const T *const skip = sample.skip.data(), *const emitted = sample.emitted.data();
    for (std::size_t t = steps; t-- > 0;) {
      T* const to = dlog_probs + (t * samples + n) * cols;
      std::fill_n(to, cols, T(0));
      if (t >= sample.steps || (zero_infinity && losses[n] == -minus_infinity<T>)) continue;
      emit(sample, log_probs + (t * samples + n) * cols);
      const T *const row = alpha + (n * steps + t) * paths.width, *const next = later.data();
      T* const after = rest.data();
      if (t + 1 == sample.steps) {
        std::fill_n(after, places, minus_infinity<T>);
        after[places - 1] = T(0);
        if (places > 1) after[places - 2] = T(0);
      } else {
        XGRAD_INDEPENDENT
        for (std::size_t s = 0; s < places; ++s)
          after[s] = log_sum(next[s], next[s + 1], next[s + 2] + skip[s + 2]);
      }
      T* const share = both.data();
      for (std::size_t s = 0; s < places; ++s) share[s] = row[s] + after[s];
      take_largest(share, places);
      T sum = 0;
      for (std::size_t s = 0; s < places; ++s) sum += share[s] = vectorized::exp(share[s]);
      for (std::size_t s = 0; s < places; ++s) to[sample.classes[s]] -= dlosses[n] * (share[s] / sum);
      T* const current = later.data();
      for (std::size_t s = 0; s < places; ++s) current[s] = after[s] + emitted[s];
      take_largest(current, places);
    }
  }
}

}  // namespace xgrad::kernels
