#include "optimizer.hpp"

#include <algorithm>
#include <cmath>

#include "../../base/detail/pieces.hpp"

namespace xgrad::kernels {

// One pass over every array: bound by bandwidth.

XGRAD_PARALLEL_KERNEL(sgd_step, n, 1, (const SgdStep& step, const T* g, T* p, T* velocity, std::size_t n),
                      (step, g, p, velocity, n)) {
  const T rate = T(step.lr), decay = T(step.weight_decay), momentum = T(step.momentum);
  if (!velocity) {
    XGRAD_INDEPENDENT
    for (std::size_t i = begin; i < end; ++i) p[i] -= rate * (g[i] + decay * p[i]);
    return;
  }
  const T keep = step.first ? T(0) : momentum, take = step.first ? T(1) : T(1 - step.dampening);
  const T from_gradient = step.nesterov ? T(1) : T(0), from_velocity = step.nesterov ? momentum : T(1);
  XGRAD_INDEPENDENT
  for (std::size_t i = begin; i < end; ++i) {
    const T gradient = g[i] + decay * p[i];
    const T v = keep * velocity[i] + take * gradient;
    velocity[i] = v;
    p[i] -= rate * (from_gradient * gradient + from_velocity * v);
  }
}

namespace {

XGRAD_KERNEL(void, adam_part, (const AdamArrays<T>& arrays, std::size_t begin, std::size_t end),
             (arrays, begin, end)) {
  const AdamStep& step = arrays.step;
  const T size = T(step.lr / step.bias_correction1), correction = T(std::sqrt(step.bias_correction2));
  const T keep1 = T(step.beta1), take1 = T(1 - step.beta1), keep2 = T(step.beta2), take2 = T(1 - step.beta2);
  const T shrink = step.decoupled ? T(1 - step.lr * step.weight_decay) : T(1);
  const T decay = step.decoupled ? T(0) : T(step.weight_decay), epsilon = T(step.eps);
  const T* const g = arrays.g;
  T *const p = arrays.p, *const m = arrays.m, *const v = arrays.v;
  XGRAD_INDEPENDENT
  for (std::size_t i = begin; i < end; ++i) {
    const T parameter = shrink * p[i];
    const T gradient = g[i] + decay * p[i];
    const T first = keep1 * m[i] + take1 * gradient;
    const T second = keep2 * v[i] + take2 * gradient * gradient;
    m[i] = first;
    v[i] = second;
    p[i] = parameter - size * (first / (std::sqrt(second) / correction + epsilon));
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
