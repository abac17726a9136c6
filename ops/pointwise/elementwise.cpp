#include "elementwise.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numbers>

#include "../../graph/fused.hpp"
#include "../../kernels/pointwise/elementwise.hpp"
#include "../index/masked_fill.hpp"
#include "../index/where.hpp"
#include "detail/pointwise.hpp"
#include "special.hpp"

namespace xgrad {
namespace ops {

constexpr Op relu_grad("relu_grad", {"dy"});
constexpr Op sigmoid_slope("sigmoid_slope", {"x"});

}  // namespace ops

namespace {

using detail::map, detail::unary;

/// f of ones and x: the slopes of a function of x that is linear on both sides of 0.
template <class T, class... P>
Variable<T> slopes(void (*f)(const T*, const T*, T*, std::size_t, P...), const Variable<T>& x,
                   std::type_identity_t<P>... p) {
  return map(f, Variable<T>(Array<T>(x.shape(), T{1})), x, p...);
}

/// s (1 - s) with s = sigmoid(x), and -s (1 - s) tanh(x / 2) as its derivative: neither cancels anywhere.
template <class T>
Variable<T> sigmoid_slope(const Variable<T>& x) {
  return record<T>(ops::sigmoid_slope, map(kernels::sigmoid_slope<T>, x), Inputs(x), Saved(x, Output()),
                   [](Variable<T> dy, Needs, Variable<T> x, Variable<T> y) -> Grads<T, 1> {
                     return {dy * (y * tanh(x * T(-0.5)))};
                   });
}

template <class T>
Variable<T> gelu_composed(const Variable<T>& x, Gelu approximate) {
  using namespace std::numbers;
  const Variable<T> within = clamp(x, -40, 40);  // beyond, both factors are 0 or 1, and x^3 may overflow
  if (approximate == Gelu::none) return x * erfc(within * (sqrt2_v<T> / -2)) * T(0.5);
  const Variable<T> cubic = within + within * within * within * T(0.044715);
  return x * sigmoid(cubic * (2 * sqrt2_v<T> * inv_sqrtpi_v<T>));
}

}  // namespace

template <class T>
Variable<T> exp(const Variable<T>& x) {
  return unary(ops::exp, map(kernels::exp<T>, x), x, Output(),
               [](const Variable<T>& dy, const Variable<T>& y) { return dy * y; });
}

template <class T>
Variable<T> log(const Variable<T>& x) {
  return unary(ops::log, map(kernels::log<T>, x), x, x,
               [](const Variable<T>& dy, const Variable<T>& x) { return dy / x; });
}

template <class T>
Variable<T> sqrt(const Variable<T>& x) {
  return unary(ops::sqrt, kernels::sqrt<T>, kernels::sqrt_grad<T>, x, Output(),
               [](const Variable<T>& dy, const Variable<T>& y) { return dy / (y * 2); });
}

template <class T>
Variable<T> rsqrt(const Variable<T>& x) {
  return unary(ops::rsqrt, kernels::rsqrt<T>, kernels::rsqrt_grad<T>, x, Output(),
               [](const Variable<T>& dy, const Variable<T>& y) { return dy * (y * y * y) * T(-0.5); });
}

template <class T>
Variable<T> reciprocal(const Variable<T>& x) {
  return unary(ops::reciprocal, kernels::reciprocal<T>, kernels::reciprocal_grad<T>, x, Output(),
               [](const Variable<T>& dy, const Variable<T>& y) { return -(dy * (y * y)); });
}

template <class T>
Variable<T> square(const Variable<T>& x) {
  return unary(ops::square, kernels::square<T>, kernels::square_grad<T>, x, x,
               [](const Variable<T>& dy, const Variable<T>& x) { return dy * x * 2; });
}

template <class T>
Variable<T> detail::cube(const Variable<T>& x) {
  return unary(ops::cube, kernels::cube<T>, kernels::cube_grad<T>, x, x,
               [](const Variable<T>& dy, const Variable<T>& x) { return dy * (x * x * 3); });
}

template <class T>
Variable<T> abs(const Variable<T>& x) {
  return unary(
      ops::abs, kernels::abs<T>, kernels::abs_grad<T>, x, x,
      [](const Variable<T>& dy, const Variable<T>& x) { return dy * slopes(kernels::abs_grad<T>, x); });
}

template <class T>
Variable<T> tanh(const Variable<T>& x) {
  return unary(ops::tanh, kernels::tanh<T>, kernels::tanh_grad<T>, x, x,
               [](const Variable<T>& dy, const Variable<T>& x) { return dy * (sigmoid_slope(x * 2) * 4); });
}

template <class T>
Variable<T> sigmoid(const Variable<T>& x) {
  return unary(ops::sigmoid, kernels::sigmoid<T>, kernels::sigmoid_grad<T>, x, x,
               [](const Variable<T>& dy, const Variable<T>& x) { return dy * sigmoid_slope(x); });
}

template <class T>
Variable<T> erf(const Variable<T>& x) {
  return unary(ops::erf, kernels::erf<T>, kernels::erf_grad<T>, x, x,
               [](const Variable<T>& dy, const Variable<T>& x) {
                 return dy * exp(-(x * x)) * (2 * std::numbers::inv_sqrtpi_v<T>);
               });
}

template <class T>
Variable<T> detail::relu_grad(const Variable<T>& dy, const Variable<T>& y) {
  return record<T>(ops::relu_grad, map(kernels::relu_grad<T>, dy, y), Inputs(dy), Saved(y.detach()),
                   [](Variable<T> d, Needs, Variable<T> y) -> Grads<T, 1> { return {relu_grad(d, y)}; });
}

template <class T>
Variable<T> relu(const Variable<T>& x) {
  return record<T>(ops::relu, map(kernels::relu<T>, x), Inputs(x), Saved(Output()),
                   detail::ByOps{[](Variable<T> dy, Needs, Variable<T> y) -> Grads<T, 1> {
                     return {detail::relu_grad(dy, y)};
                   }});
}

template <class T>
Variable<T> leaky_relu(const Variable<T>& x, std::type_identity_t<T> negative_slope) {
  return unary(
      ops::leaky_relu, kernels::leaky_relu<T>, kernels::leaky_relu_grad<T>, x, x,
      [negative_slope](const Variable<T>& dy, const Variable<T>& x) {
        return dy * slopes(kernels::leaky_relu_grad<T>, x, negative_slope);
      },
      negative_slope);
}

template <class T>
Variable<T> elu(const Variable<T>& x, std::type_identity_t<T> alpha) {
  return unary(
      ops::elu, kernels::elu<T>, kernels::elu_grad<T>, x, x,
      [alpha](const Variable<T>& dy, const Variable<T>& x) {
        // e^x of the negative elements alone, for it may overflow
        const Mask positive = x.value() > T{0};
        return dy * exp(masked_fill(x, positive, 0)) * slopes(kernels::leaky_relu_grad<T>, x, alpha);
      },
      alpha);
}

template <class T>
Variable<T> log_sigmoid(const Variable<T>& x) {
  return unary(ops::log_sigmoid, kernels::log_sigmoid<T>, kernels::log_sigmoid_grad<T>, x, x,
               [](const Variable<T>& dy, const Variable<T>& x) { return dy * sigmoid(-x); });
}

template <class T>
Variable<T> silu(const Variable<T>& x) {
  return unary(
      ops::silu, kernels::silu<T>, kernels::silu_grad<T>, x, x,
      [](const Variable<T>& dy, const Variable<T>& x) { return dy * (sigmoid(x) + x * sigmoid_slope(x)); });
}

template <class T>
Variable<T> gelu(const Variable<T>& x, Gelu approximate) {
  const bool exact = approximate == Gelu::none;
  const auto forward = [exact](const Variable<T>& x) {
    return map(exact ? kernels::gelu<T> : kernels::gelu_tanh<T>, x);
  };
  return fused<T>(
      ops::gelu, forward(x), Inputs(x), Attributes(exact ? "none" : "tanh"), Saved(),
      [approximate](const Variable<T>& x) { return gelu_composed(x, approximate); },
      RecomputingBackward(
          [exact](const Variable<T>& dy, Needs, const Variable<T>& x) -> Grads<T, 1> {
            return {map(exact ? kernels::gelu_grad<T> : kernels::gelu_tanh_grad<T>, dy, x)};
          },
          forward));
}

template <class T>
Variable<T> softplus(const Variable<T>& x, std::type_identity_t<T> beta, std::type_identity_t<T> threshold) {
  return record<T>(
      ops::softplus, map(kernels::softplus<T>, x, beta, threshold), Inputs(x), Attributes(beta, threshold),
      Saved(x),
      KernelBackward([beta, threshold](const Variable<T>& dy, Needs, const Variable<T>& x)
                         -> Grads<T, 1> { return {map(kernels::softplus_grad<T>, dy, x, beta, threshold)}; },
                     [beta, threshold](const Variable<T>& dy, Needs, const Variable<T>& x) -> Grads<T, 1> {
                       const Mask linear = x.value() * beta > threshold;
                       return {masked_fill(dy * sigmoid(x * beta), linear, 0) + masked_fill(dy, !linear, 0)};
                     }));
}

template <class T>
Variable<T> clamp(const Variable<T>& x, std::type_identity_t<std::optional<T>> low,
                  std::type_identity_t<std::optional<T>> high) {
  if (!low && !high) detail::fail<ValueError>("clamp: at least one bound must be given");
  constexpr T infinity = std::numeric_limits<T>::infinity();
  const T least = low.value_or(-infinity), most = high.value_or(infinity);
  Variable<T> y = map(kernels::clamp<T>, x, least, most);
  if (low && high && (std::isnan(*low) || std::isnan(*high)))
    std::fill_n(detail::data(y), y.size(), std::numeric_limits<T>::quiet_NaN());
  return record<T>(ops::clamp, std::move(y), Inputs(x), Attributes(low, high), Saved(x),
                   KernelBackward(
                       [least, most](const Variable<T>& dy, Needs, const Variable<T>& x) -> Grads<T, 1> {
                         return {map(kernels::clamp_grad<T>, dy, x, least, most)};
                       },
                       [least, most](const Variable<T>& dy, Needs, const Variable<T>& x) -> Grads<T, 1> {
                         const Mask outside = !(x.value() >= least && x.value() <= most);
                         return {masked_fill(dy, outside, 0)};
                       }));
}

template <class T, std::same_as<Variable<T>> Bound>
Variable<T> clamp(const Variable<T>& x, const Bound& low, const Bound& high) {
  Shape shape = x.shape();
  if (low.defined() || !high.defined())  // at least one is there, or its use throws
    shape = detail::broadcast_shape("clamp", shape, low.shape(), "x", "low");
  if (high.defined()) detail::broadcast_shape("clamp", shape, high.shape(), "x and low", "high");
  const Mask number = !xt::isnan(x.value());
  Variable<T> y = x;
  if (low.defined()) y = where(Mask(number && !(x.value() >= low.value())), low, y);
  if (!high.defined()) return y;
  Mask above = number && !(x.value() <= high.value());
  if (low.defined()) above = number && !xt::isnan(low.value()) && (above || low.value() > high.value());
  return where(above, high, y);
}

#define XGRAD_INSTANTIATE(T)                                                          \
  template Variable<T> exp(const Variable<T>&);                                       \
  template Variable<T> log(const Variable<T>&);                                       \
  template Variable<T> sqrt(const Variable<T>&);                                      \
  template Variable<T> rsqrt(const Variable<T>&);                                     \
  template Variable<T> reciprocal(const Variable<T>&);                                \
  template Variable<T> square(const Variable<T>&);                                    \
  template Variable<T> detail::cube(const Variable<T>&);                              \
  template Variable<T> detail::relu_grad(const Variable<T>&, const Variable<T>&);     \
  template Variable<T> abs(const Variable<T>&);                                       \
  template Variable<T> tanh(const Variable<T>&);                                      \
  template Variable<T> sigmoid(const Variable<T>&);                                   \
  template Variable<T> erf(const Variable<T>&);                                       \
  template Variable<T> relu(const Variable<T>&);                                      \
  template Variable<T> leaky_relu(const Variable<T>&, T);                             \
  template Variable<T> elu(const Variable<T>&, T);                                    \
  template Variable<T> log_sigmoid(const Variable<T>&);                               \
  template Variable<T> silu(const Variable<T>&);                                      \
  template Variable<T> gelu(const Variable<T>&, Gelu);                                \
  template Variable<T> softplus(const Variable<T>&, T, T);                            \
  template Variable<T> clamp(const Variable<T>&, std::optional<T>, std::optional<T>); \
  template Variable<T> clamp(const Variable<T>&, const Variable<T>&, const Variable<T>&);

XGRAD_INSTANTIATE(float)
XGRAD_INSTANTIATE(double)

}  // namespace xgrad
