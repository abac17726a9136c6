#pragma once

#include <cstddef>

namespace xgrad::kernels {

/// One step of gradient descent, as torch.optim.SGD: g += weight_decay p; velocity = momentum velocity +
/// (1 - dampening) g, or g on the `first` step; p -= lr velocity, or lr (g + momentum velocity) with
/// `nesterov`. `velocity` is null without momentum. g itself is left alone.
template <typename T>
void sgd_step(T* p, const T* g, T* velocity, std::size_t n, double lr, double momentum, double dampening,
              double weight_decay, bool nesterov, bool first);

/// One step of Adam (weight decay added to g), or of AdamW (`decoupled`: p *= 1 - lr weight_decay first):
/// m = beta1 m + (1 - beta1) g; v = beta2 v + (1 - beta2) g^2;
/// p -= lr / bias_correction1 * m / (sqrt(v) / sqrt(bias_correction2) + eps), bias_correction = 1 -
/// beta^step.
template <typename T>
void adam_step(T* p, const T* g, T* m, T* v, std::size_t n, double lr, double beta1, double beta2, double eps,
               double weight_decay, bool decoupled, double bias_correction1, double bias_correction2);

/// average = decay average + (1 - decay) x.
template <typename T>
void average_step(T* average, const T* x, std::size_t n, double decay);

}  // namespace xgrad::kernels
