#include "functions.hpp"

#include <utility>

#include "../base/error.hpp"
#include "../ops/norm/softmax.hpp"
#include "../ops/pointwise/activations.hpp"
#include "../ops/pointwise/gated.hpp"

namespace xgrad {

template <class T>
FunctionModule<T>::FunctionModule(std::string type, Function function)
    : Module<T>(std::move(type)), function_(std::move(function)) {
  if (!function_) detail::fail<ValueError>(this->type(), ": there must be a function");
}

template <class T>
Variable<T> FunctionModule<T>::operator()(const Variable<T>& x) const {
  const auto scope = this->scope();
  return function_(x);
}

/// Defines the function `name` that returns a module of this type, and what it computes of x.
#define XGRAD_FUNCTION(name, parameters, ...)                          \
  template <class T>                                                   \
  FunctionModule<T> name parameters {                                  \
    return {#name, [=](const Variable<T>& x) { return __VA_ARGS__; }}; \
  }                                                                    \
  template FunctionModule<float> name parameters;                      \
  template FunctionModule<double> name parameters;

XGRAD_FUNCTION(ReLU, (), relu(x))
XGRAD_FUNCTION(ReLU6, (), relu6(x))
XGRAD_FUNCTION(LeakyReLU, (double negative_slope), leaky_relu(x, T(negative_slope)))
XGRAD_FUNCTION(ELU, (double alpha), elu(x, T(alpha)))
XGRAD_FUNCTION(CELU, (double alpha), celu(x, T(alpha)))
XGRAD_FUNCTION(SELU, (), selu(x))
XGRAD_FUNCTION(GELU, (Gelu approximate), gelu(x, approximate))
XGRAD_FUNCTION(SiLU, (), silu(x))
XGRAD_FUNCTION(Mish, (), mish(x))
XGRAD_FUNCTION(Tanh, (), tanh(x))
XGRAD_FUNCTION(Sigmoid, (), sigmoid(x))
XGRAD_FUNCTION(LogSigmoid, (), log_sigmoid(x))
XGRAD_FUNCTION(Softplus, (double beta, double threshold), softplus(x, T(beta), T(threshold)))
XGRAD_FUNCTION(Softsign, (), softsign(x))
XGRAD_FUNCTION(Hardtanh, (double min_val, double max_val), hardtanh(x, T(min_val), T(max_val)))
XGRAD_FUNCTION(Hardsigmoid, (), hardsigmoid(x))
XGRAD_FUNCTION(Hardswish, (), hardswish(x))
XGRAD_FUNCTION(Tanhshrink, (), tanhshrink(x))
XGRAD_FUNCTION(Softshrink, (double lambda), softshrink(x, T(lambda)))
XGRAD_FUNCTION(Hardshrink, (double lambda), hardshrink(x, T(lambda)))
XGRAD_FUNCTION(Threshold, (double threshold, double value), xgrad::threshold(x, T(threshold), T(value)))
XGRAD_FUNCTION(GLU, (Int dim), glu(x, dim))
XGRAD_FUNCTION(Softmax, (Int dim), softmax(x, dim))
XGRAD_FUNCTION(LogSoftmax, (Int dim), log_softmax(x, dim))
XGRAD_FUNCTION(Identity, (), x)

template class FunctionModule<float>;
template class FunctionModule<double>;

}  // namespace xgrad
