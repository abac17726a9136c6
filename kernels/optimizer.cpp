#include "optimizer.hpp"

#include <cmath>

#include "pieces.hpp"

namespace xgrad::kernels {

// One pass over every array: bound by bandwidth.

XGRAD_PARALLEL_KERNEL(sgd_step, n, 1,
                      (T * p, const T* g, T* velocity, std::size_t n, double lr, double momentum,
                       double dampening, double weight_decay, bool nesterov, bool first),
                      (p, g, velocity, n, lr, momentum, dampening, weight_decay, nesterov, first)) {
  const T rate = T(lr), decay = T(weight_decay);
  if (!velocity) {
    XGRAD_INDEPENDENT
    for (std::size_t i = begin; i < n; ++i) p[i] -= rate * (g[i] + decay * p[i]);
    return;
  }
  const T keep = first ? T(0) : T(momentum), take = first ? T(1) : T(1 - dampening);
  const T from_gradient = nesterov ? T(1) : T(0), from_velocity = nesterov ? T(momentum) : T(1);
  XGRAD_INDEPENDENT
  for (std::size_t i = begin; i < n; ++i) {
    const T gradient = g[i] + decay * p[i];
    const T v = keep * velocity[i] + take * gradient;
    velocity[i] = v;
    p[i] -= rate * (from_gradient * gradient + from_velocity * v);
  }
}

XGRAD_PARALLEL_KERNEL(adam_step, n, 4,
                      (T * p, const T* g, T* m, T* v, std::size_t n, double lr, double beta1, double beta2,
                       double eps, double weight_decay, bool decoupled, double bias_correction1,
                       double bias_correction2),
                      (p, g, m, v, n, lr, beta1, beta2, eps, weight_decay, decoupled, bias_correction1,
                       bias_correction2)) {
  const T step = T(lr / bias_correction1), correction = T(std::sqrt(bias_correction2)), epsilon = T(eps);
  const T keep1 = T(beta1), take1 = T(1 - beta1), keep2 = T(beta2), take2 = T(1 - beta2);
  const T shrink = decoupled ? T(1 - lr * weight_decay) : T(1), decay = decoupled ? T(0) : T(weight_decay);
  XGRAD_INDEPENDENT
  for (std::size_t i = begin; i < n; ++i) {
    const T parameter = shrink * p[i];
    const T gradient = g[i] + decay * p[i];
    const T first = keep1 * m[i] + take1 * gradient;
    const T second = keep2 * v[i] + take2 * gradient * gradient;
    m[i] = first;
    v[i] = second;
    p[i] = parameter - step * (first / (std::sqrt(second) / correction + epsilon));
  }
}

XGRAD_PARALLEL_KERNEL(average_step, n, 1, (T * average, const T* x, std::size_t n, double decay),
                      (average, x, n, decay)) {
  const T keep = T(decay), take = T(1 - decay);
  XGRAD_INDEPENDENT
  for (std::size_t i = begin; i < n; ++i) average[i] = keep * average[i] + take * x[i];
}

}  // namespace xgrad::kernels
