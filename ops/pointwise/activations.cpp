#include "activations.hpp"

#include "../../graph/fused.hpp"
#include "../../kernels/pointwise/elementwise.hpp"
#include "../index/masked_fill.hpp"
#include "detail/pointwise.hpp"
#include "elementwise.hpp"
#include "rounding.hpp"

namespace xgrad {
namespace {

/// dy e^(steepness x), times `below`, where x <= 0; dy times `above` elsewhere.
template <class T>
Variable<T> exponential_units_grad(const Variable<T>& dy, const Variable<T>& x, T steepness, T below,
                                   T above) {
  const Mask positive = x.value() > T{0};
  const Variable<T> negative = masked_fill(x, positive, 0);  // for e^x may overflow
  return masked_fill(dy * exp(negative * steepness) * below, positive, 0) +
         masked_fill(dy * above, !positive, 0);
}

}  // namespace

template <class T>
Variable<T> mish(const Variable<T>& x) {
  return fused<T>(
      ops::mish, detail::map(kernels::mish<T>, x), Inputs(x), Attributes(), Saved(),
      [](const Variable<T>& x) { return x * tanh(-log_sigmoid(-x)); },
      [](const Variable<T>& dy, Needs, const Variable<T>& x) -> Grads<T, 1> {
        return {detail::map(kernels::mish_grad<T>, dy, x)};
      });
}

template <class T>
Variable<T> hardswish(const Variable<T>& x) {
  return detail::unary(ops::hardswish, kernels::hardswish<T>, kernels::hardswish_grad<T>, x, x,
                       [](const Variable<T>& dy, const Variable<T>& x) {
                         const Mask below = x.value() <= T{-3}, above = x.value() >= T{3};
                         const Variable<T> bent = dy * (x / 3 + T(0.5));
                         return masked_fill(bent, below || above, 0) + masked_fill(dy, !above, 0);
                       });
}

template <class T>
Variable<T> hardsigmoid(const Variable<T>& x) {
  return detail::unary(ops::hardsigmoid, kernels::hardsigmoid<T>, kernels::hardsigmoid_grad<T>, x, x,
                       [](const Variable<T>& dy, const Variable<T>& x) {
                         return masked_fill(dy * T{kernels::hardsigmoid_slope},
                                            !(x.value() > T{-3} && x.value() < T{3}), 0);
                       });
}

template <class T>
Variable<T> hardtanh(const Variable<T>& x, std::type_identity_t<T> min_val, std::type_identity_t<T> max_val) {
  if (!(min_val <= max_val)) {
    detail::fail<ValueError>("hardtanh: min_val must be at most max_val, got ", min_val, " and ", max_val);
  }
  return detail::unary(
      ops::hardtanh, kernels::clamp<T>, kernels::hardtanh_grad<T>, x, x,
      [min_val, max_val](const Variable<T>& dy, const Variable<T>& x) {
        const Mask outside = x.value() <= min_val || x.value() >= max_val;
        return masked_fill(dy, outside, 0);
      },
      min_val, max_val);
}

template <class T>
Variable<T> relu6(const Variable<T>& x) {
  return hardtanh(x, 0, 6);
}

template <class T>
Variable<T> selu(const Variable<T>& x) {
  return detail::unary(ops::selu, kernels::selu<T>, kernels::selu_grad<T>, x, x,
                       [](const Variable<T>& dy, const Variable<T>& x) {
                         return exponential_units_grad(dy, x, T{1},
                                                       T(kernels::selu_scale * kernels::selu_alpha),
                                                       T(kernels::selu_scale));
                       });
}

template <class T>
Variable<T> celu(const Variable<T>& x, std::type_identity_t<T> alpha) {
  if (alpha == 0) detail::fail<ValueError>("celu: alpha must not be 0");
  return detail::unary(
      ops::celu, kernels::celu<T>, kernels::celu_grad<T>, x, x,
      [alpha](const Variable<T>& dy, const Variable<T>& x) {
        const T steepness = kernels::celu_steepness(alpha);
        return exponential_units_grad(dy, x, steepness, alpha * steepness, T{1});
      },
      alpha);
}

// [softsign]
template <class T>
Variable<T> softsign(const Variable<T>& x) {
  return detail::unary(
      ops::softsign, kernels::softsign<T>, kernels::softsign_grad<T>, x, x,
      [](const Variable<T>& dy, const Variable<T>& x) { return dy * square(reciprocal(abs(x) + 1)); });
}

// [softsign]
template <class T>
Variable<T> tanhshrink(const Variable<T>& x) {
  return x - tanh(x);
}

template <class T>
Variable<T> softshrink(const Variable<T>& x, std::type_identity_t<T> lambda) {
  if (!(lambda >= 0)) detail::fail<ValueError>("softshrink: lambda must be at least 0, got ", lambda);
  const Mask is_small = xt::abs(x.value()) <= lambda;
  return masked_fill(x - sign(x.detach()) * lambda, is_small, 0);
}

template <class T>
Variable<T> hardshrink(const Variable<T>& x, std::type_identity_t<T> lambda) {
  return masked_fill(x, x.value() >= -lambda && x.value() <= lambda, 0);
}

template <class T>
Variable<T> threshold(const Variable<T>& x, std::type_identity_t<T> threshold,
                      std::type_identity_t<T> value) {
  return masked_fill(x, x.value() <= threshold, value);
}

#define XGRAD_INSTANTIATE(T)                               \
  template Variable<T> mish(const Variable<T>&);           \
  template Variable<T> hardswish(const Variable<T>&);      \
  template Variable<T> hardsigmoid(const Variable<T>&);    \
  template Variable<T> hardtanh(const Variable<T>&, T, T); \
  template Variable<T> relu6(const Variable<T>&);          \
  template Variable<T> selu(const Variable<T>&);           \
  template Variable<T> celu(const Variable<T>&, T);        \
  template Variable<T> softsign(const Variable<T>&);       \
  template Variable<T> tanhshrink(const Variable<T>&);     \
  template Variable<T> softshrink(const Variable<T>&, T);  \
  template Variable<T> hardshrink(const Variable<T>&, T);  \
  template Variable<T> threshold(const Variable<T>&, T, T);

XGRAD_INSTANTIATE(float)
XGRAD_INSTANTIATE(double)

}  // namespace xgrad
