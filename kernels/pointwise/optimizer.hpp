#pragma once

#include <cstddef>
#include <span>
#include <type_traits>

namespace xgrad::kernels {

// Steps leave g itself alone; with `maximize` they take -g for it.

struct SgdStep {
  double lr, momentum, dampening, weight_decay;
  bool nesterov, first, maximize;
};

/// One step of gradient descent, as torch.optim.SGD: g += weight_decay p; velocity = momentum velocity +
/// (1 - dampening) g, or g on the `first` step; p -= lr velocity, or lr (g + momentum velocity) with
/// `nesterov`. `velocity` is null without momentum.
template <typename T>
void sgd_step(const SgdStep& step, const T* g, T* p, T* velocity, std::size_t n);

/// What a step subtracts from p, with d = sqrt(v) / correction + eps.
enum class AdamUpdate {
  plain,          ///< rate m / d: Adam
  largest,        ///< the same with the largest v so far in d: Adam with amsgrad
  with_gradient,  ///< (rate m + gradient_rate g) / d: NAdam
  average,        ///< rate m: RAdam's first steps
};

struct AdamStep {
  double beta1, beta2;
  double shrink;  ///< p *= shrink first: decoupled weight decay
  double decay;   ///< g += decay p
  double rate, gradient_rate, correction, eps;
  bool maximize;
  AdamUpdate update;
};

/// An array of parameters, with its gradient and the averages of it and of its square; `largest` is null
/// but for AdamUpdate::largest.
template <typename T>
struct AdamArrays {
  AdamStep step;
  const T* g;
  T *p, *m, *v, *largest;
  std::size_t n;
};

/// One step of Adam's kind: m = beta1 m + (1 - beta1) g; v = beta2 v + (1 - beta2) g^2, then p is updated.
/// All arrays are divided among the threads as if they were one.
template <typename T>
void adam_step(std::span<const AdamArrays<T>> all);

struct RmspropStep {
  double lr, alpha, eps, weight_decay, momentum;
  bool maximize;
};

/// One step of torch.optim.RMSprop: g += weight_decay p; v = alpha v + (1 - alpha) g^2; q = g / (sqrt(v) +
/// eps); p -= lr q. With `mean`, mean = alpha mean + (1 - alpha) g and v - mean^2 replaces v in q; with
/// `velocity`, velocity = momentum velocity + q replaces q. Both may be null.
template <typename T>
void rmsprop_step(const RmspropStep& step, const T* g, T* p, T* v, T* mean, T* velocity, std::size_t n);

struct AdagradStep {
  double lr, eps, weight_decay;
  bool maximize;
};

/// One step of torch.optim.Adagrad: g += weight_decay p; sum += g^2; p -= lr g / (sqrt(sum) + eps).
template <typename T>
void adagrad_step(const AdagradStep& step, const T* g, T* p, T* sum, std::size_t n);

/// momentum = beta momentum + (1 - beta) g; update = `nesterov` ? beta momentum + (1 - beta) g : momentum,
/// rounded to bfloat16.
template <typename T>
void muon_momentum(double beta, bool nesterov, const T* g, T* momentum, float* update, std::size_t n);

/// x = x / divisor, rounded to bfloat16.
void div_to_bfloat16(float divisor, float* x, std::size_t n);

/// p = shrink p - rate update.
template <typename T>
void muon_step(double shrink, double rate, const float* update, T* p, std::size_t n);

/// y = x + alpha d; y may be x.
template <typename T>
void add_scaled(const T* x, std::type_identity_t<T> alpha, const T* d, T* y, std::size_t n);

/// average = decay average + (1 - decay) x.
template <typename T>
void average_step(T* average, const T* x, std::size_t n, double decay);

}  // namespace xgrad::kernels
