#include "activation.hpp"

#include "../../ops/pointwise/arithmetic.hpp"
#include "../../ops/pointwise/elementwise.hpp"
#include "../../ops/pointwise/gated.hpp"

namespace xgrad {

template <class T>
Variable<T> activate(Activation f, const Variable<T>& x) {
  switch (f) {
    case Activation::relu:
      return relu(x);
    case Activation::silu:
      return silu(x);
    case Activation::gelu_tanh:
      return gelu(x, Gelu::tanh);
    case Activation::gelu_fast:
      return x * sigmoid((x * T(2 * 0.7978845608)) * (square(x) * T(0.044715) + T(1)));
    case Activation::tanh:
      return tanh(x);
    case Activation::gelu:
      break;
  }
  return gelu(x);
}

template <class T>
Variable<T> activate_gated(Activation f, const Variable<T>& gate, const Variable<T>& x) {
  switch (f) {
    case Activation::relu:
      return gated(gate, x, Gate::relu);
    case Activation::silu:
      return gated(gate, x, Gate::silu);
    case Activation::gelu:
      return gated(gate, x, Gate::gelu);
    case Activation::gelu_tanh:
      return gated(gate, x, Gate::gelu_tanh);
    case Activation::gelu_fast:
    case Activation::tanh:
      break;
  }
  return activate(f, gate) * x;
}

#define XGRAD_INSTANTIATE(T)                                     \
  template Variable<T> activate(Activation, const Variable<T>&); \
  template Variable<T> activate_gated(Activation, const Variable<T>&, const Variable<T>&);

XGRAD_INSTANTIATE(float)
XGRAD_INSTANTIATE(double)

}  // namespace xgrad
