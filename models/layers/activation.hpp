#pragma once

#include "../../graph/variable.hpp"

namespace xgrad {

/// Activation function of a feed-forward network.
enum class Activation {
  relu,
  gelu,       ///< x Phi(x)
  gelu_tanh,  ///< x / 2 (1 + tanh(sqrt(2 / pi) (x + 0.044715 x^3))); gelu_new and gelu_pytorch_tanh
  gelu_fast,  ///< gelu_tanh with 0.7978845608 for sqrt(2 / pi)
  silu,       ///< x sigmoid(x)
  tanh,
};

/// Applies it to each element.
template <class T>
Variable<T> activate(Activation f, const Variable<T>& x);

/// f(gate) x (Shazeer 2020, arXiv:2002.05202).
template <class T>
Variable<T> activate_gated(Activation f, const Variable<T>& gate, const Variable<T>& x);

}  // namespace xgrad
