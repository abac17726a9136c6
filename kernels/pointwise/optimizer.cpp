#include "optimizer.hpp"

#include <algorithm>
#include <cmath>
#include <type_traits>

#include "../../base/detail/bytes/bit_cast.hpp"
#include "../../base/detail/system/pieces.hpp"
#include "../low_precision/bfloat16.hpp"

namespace xgrad::kernels {

// One pass over every array: bound by bandwidth.

namespace {

/// The gradient of what is minimized.
template <typename T>
XGRAD_INLINE T descent(T g, bool maximize) {
  const T opposite = -g;
  return maximize ? opposite : g;
}

}  // namespace

XGRAD_PARALLEL_KERNEL(sgd_step, n, 1, (const SgdStep& step, const T* g, T* p, T* velocity, std::size_t n),
                      (step, g, p, velocity, n)) {
  const T rate = T(step.lr), decay = T(step.weight_decay), momentum = T(step.momentum);
  const bool maximize = step.maximize;
  if (!velocity) {
    XGRAD_INDEPENDENT
    for (std::size_t i = begin; i < end; ++i) p[i] -= rate * (descent(g[i], maximize) + decay * p[i]);
    return;
  }
  const T keep = step.first ? T(0) : momentum, take = step.first ? T(1) : T(1 - step.dampening);
  const T from_gradient = step.nesterov ? T(1) : T(0), from_velocity = step.nesterov ? momentum : T(1);
  XGRAD_INDEPENDENT
  for (std::size_t i = begin; i < end; ++i) {
    const T gradient = descent(g[i], maximize) + decay * p[i];
    const T v = keep * velocity[i] + take * gradient;
    velocity[i] = v;
    p[i] -= rate * (from_gradient * gradient + from_velocity * v);
  }
}

namespace {

XGRAD_KERNEL(void, adam_part, (const AdamArrays<T>& arrays, std::size_t begin, std::size_t end),
             (arrays, begin, end)) {
  const AdamStep& step = arrays.step;
  const T size = T(step.rate), gradient_size = T(step.gradient_rate), correction = T(step.correction);
  const T keep1 = T(step.beta1), take1 = T(1 - step.beta1), keep2 = T(step.beta2), take2 = T(1 - step.beta2);
  const T shrink = T(step.shrink), decay = T(step.decay), epsilon = T(step.eps);
  const bool maximize = step.maximize;
  const T* const g = arrays.g;
  T *const p = arrays.p, *const m = arrays.m, *const v = arrays.v, *const largest = arrays.largest;
  const auto pass = [=](auto update) XGRAD_INLINE_LAMBDA {
    XGRAD_INDEPENDENT
    for (std::size_t i = begin; i < end; ++i) {
      const T parameter = shrink * p[i];
      const T gradient = descent(g[i], maximize) + decay * p[i];
      const T first = keep1 * m[i] + take1 * gradient;
      const T second = keep2 * v[i] + take2 * gradient * gradient;
      m[i] = first;
      v[i] = second;
      T square = second, change = first;
      if constexpr (update == AdamUpdate::largest) {
        const T before = largest[i];
        square = before > second ? before : second;
        largest[i] = square;
      }
      if constexpr (update == AdamUpdate::with_gradient) {
        change = (size * first + gradient_size * gradient) / (std::sqrt(square) / correction + epsilon);
        p[i] = parameter - change;
      } else {
        if constexpr (update != AdamUpdate::average)
          change = first / (std::sqrt(square) / correction + epsilon);
        p[i] = parameter - size * change;
      }
    }
  };
  switch (step.update) {
    case AdamUpdate::plain:
      return pass(std::integral_constant<AdamUpdate, AdamUpdate::plain>());
    case AdamUpdate::largest:
      return pass(std::integral_constant<AdamUpdate, AdamUpdate::largest>());
    case AdamUpdate::with_gradient:
      return pass(std::integral_constant<AdamUpdate, AdamUpdate::with_gradient>());
    case AdamUpdate::average:
      return pass(std::integral_constant<AdamUpdate, AdamUpdate::average>());
  }
}

}  // namespace

template <typename T>
void adam_step(std::span<const AdamArrays<T>> all) {
  constexpr std::size_t cost = 4;
  std::size_t total = 0;
  for (const AdamArrays<T>& arrays : all) total += arrays.n;
  // Parts of each array, not of all together: a product has computed a gradient's halves on two threads.
  parallel_parts(total, cost, [all](const auto& part_of) {
    for (const AdamArrays<T>& arrays : all) {
      const auto [begin, end] = part_of(arrays.n);
      if (begin < end) adam_part(arrays, begin, end);
    }
  });
}

template void adam_step(std::span<const AdamArrays<float>>);
template void adam_step(std::span<const AdamArrays<double>>);

XGRAD_PARALLEL_KERNEL(rmsprop_step, n, 4,
                      (const RmspropStep& step, const T* g, T* p, T* v, T* mean, T* velocity, std::size_t n),
                      (step, g, p, v, mean, velocity, n)) {
  const T rate = T(step.lr), keep = T(step.alpha), take = T(1 - step.alpha), epsilon = T(step.eps);
  const T decay = T(step.weight_decay), momentum = T(step.momentum);
  const bool maximize = step.maximize;
  const auto pass = [=](auto centered, auto moving) XGRAD_INLINE_LAMBDA {
    XGRAD_INDEPENDENT
    for (std::size_t i = begin; i < end; ++i) {
      const T gradient = descent(g[i], maximize) + decay * p[i];
      const T square = keep * v[i] + take * gradient * gradient;
      v[i] = square;
      T variance = square;
      if constexpr (centered) {
        const T average = keep * mean[i] + take * gradient;
        mean[i] = average;
        variance = square - average * average;
        variance = variance < T(0) ? T(0) : variance;  // rounded below it
      }
      T change = gradient / (std::sqrt(variance) + epsilon);
      if constexpr (moving) {
        change += momentum * velocity[i];
        velocity[i] = change;
      }
      p[i] -= rate * change;
    }
  };
  if (mean != nullptr && velocity != nullptr) return pass(std::true_type(), std::true_type());
  if (mean != nullptr) return pass(std::true_type(), std::false_type());
  if (velocity != nullptr) return pass(std::false_type(), std::true_type());
  pass(std::false_type(), std::false_type());
}

XGRAD_PARALLEL_KERNEL(adagrad_step, n, 4, (const AdagradStep& step, const T* g, T* p, T* sum, std::size_t n),
                      (step, g, p, sum, n)) {
  const T rate = T(step.lr), decay = T(step.weight_decay), epsilon = T(step.eps);
  const bool maximize = step.maximize;
  XGRAD_INDEPENDENT
  for (std::size_t i = begin; i < end; ++i) {
    const T gradient = descent(g[i], maximize) + decay * p[i];
    const T square = sum[i] + gradient * gradient;
    sum[i] = square;
    p[i] -= rate * (gradient / (std::sqrt(square) + epsilon));
  }
}

namespace {

XGRAD_INLINE float to_bfloat16(float x) { return bit_cast<float>(rounded_bits(x)); }

}  // namespace

XGRAD_PARALLEL_KERNEL(muon_momentum, n, 2,
                      (double beta, bool nesterov, const T* g, T* momentum, float* update, std::size_t n),
                      (beta, nesterov, g, momentum, update, n)) {
  const T keep = T(beta), take = T(1 - beta);
  const T from_momentum = nesterov ? keep : T(1), from_gradient = nesterov ? take : T(0);
  XGRAD_INDEPENDENT
  for (std::size_t i = begin; i < end; ++i) {
    const T average = keep * momentum[i] + take * g[i];
    momentum[i] = average;
    update[i] = to_bfloat16(static_cast<float>(from_momentum * average + from_gradient * g[i]));
  }
}

void div_to_bfloat16(float divisor, float* x, std::size_t n) {
  parallel_pieces(n, 1, [divisor, x](std::size_t begin, std::size_t end) {
    for (std::size_t i = begin; i < end; ++i) x[i] = to_bfloat16(x[i] / divisor);
  });
}

XGRAD_PARALLEL_KERNEL(muon_step, n, 1, (double shrink, double rate, const float* update, T* p, std::size_t n),
                      (shrink, rate, update, p, n)) {
  const T keep = T(shrink), size = T(rate);
  XGRAD_INDEPENDENT
  for (std::size_t i = begin; i < end; ++i) p[i] = keep * p[i] - size * static_cast<T>(update[i]);
}

XGRAD_PARALLEL_KERNEL(add_scaled, n, 1,
                      (const T* x, std::type_identity_t<T> alpha, const T* d, T* y, std::size_t n),
                      (x, alpha, d, y, n)) {
  XGRAD_INDEPENDENT
  for (std::size_t i = begin; i < end; ++i) y[i] = x[i] + alpha * d[i];
}

XGRAD_PARALLEL_KERNEL(average_step, n, 1, (T * average, const T* x, std::size_t n, double decay),
                      (average, x, n, decay)) {
  const T take = T(1 - decay);
  XGRAD_INDEPENDENT
  for (std::size_t i = begin; i < end; ++i)
    average[i] += take * (x[i] - average[i]);  // none of what does not change
}

}  // namespace xgrad::kernels
