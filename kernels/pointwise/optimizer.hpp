#pragma once

#include <cstddef>
#include <span>
#include <type_traits>

namespace xgrad::kernels {

struct SgdStep {
  double lr, momentum, dampening, weight_decay;
  bool nesterov, first;
};

/// One step of gradient descent, as torch.optim.SGD: g += weight_decay p; velocity = momentum velocity +
/// (1 - dampening) g, or g on the `first` step; p -= lr velocity, or lr (g + momentum velocity) with
/// `nesterov`. `velocity` is null without momentum. g itself is left alone.
template <typename T>
void sgd_step(const SgdStep& step, const T* g, T* p, T* velocity, std::size_t n);

struct AdamStep {
  double lr, beta1, beta2, eps, weight_decay;
  bool decoupled;
  double bias_correction1, bias_correction2;
};

/// An array of parameters, with its gradient and the averages of it and of its square.
template <typename T>
struct AdamArrays {
  AdamStep step;
  const T* g;
  T *p, *m, *v;
  std::size_t n;
};

/// One step of Adam (weight decay added to g), or of AdamW (`decoupled`: p *= 1 - lr weight_decay first):
/// m = beta1 m + (1 - beta1) g; v = beta2 v + (1 - beta2) g^2;
/// p -= lr / bias_correction1 * m / (sqrt(v) / sqrt(bias_correction2) + eps), bias_correction = 1 -
/// beta^step. All arrays are divided among the threads as if they were one.
template <typename T>
void adam_step(std::span<const AdamArrays<T>> all);

/// y = x + alpha d; y may be x.
template <typename T>
void add_scaled(const T* x, std::type_identity_t<T> alpha, const T* d, T* y, std::size_t n);

/// average = decay average + (1 - decay) x.
template <typename T>
void average_step(T* average, const T* x, std::size_t n, double decay);

}  // namespace xgrad::kernels
