#pragma once

#include <xgrad/graph/variable.hpp>

// Functions of each element; y has the shape of x. https://pytorch.org/docs/stable/torch.html#pointwise-ops

namespace xgrad {

/// y = e^x, dx = dy y.
template <class T>
Variable<T> exp(const Variable<T>& x);

/// y = ln x, dx = dy / x; log(0) = -inf, of a negative number nan.
template <class T>
Variable<T> log(const Variable<T>& x);

/// y = sqrt(x), dx = dy / (2 y).
template <class T>
Variable<T> sqrt(const Variable<T>& x);

/// y = tanh(x), dx = dy (1 - y^2).
template <class T>
Variable<T> tanh(const Variable<T>& x);

/// The Gauss error function: y = erf(x), dx = dy 2 / sqrt(pi) e^(-x^2).
template <class T>
Variable<T> erf(const Variable<T>& x);

/// y = max(x, 0), dx = dy where y > 0; nan stays nan.
template <class T>
Variable<T> relu(const Variable<T>& x);

/// The two forms of gelu.
enum class Gelu {
  none,  ///< x Phi(x), with Phi the normal distribution function
  tanh,  ///< x / 2 (1 + tanh(sqrt(2 / pi) (x + 0.044715 x^3)))
};

/// Gaussian error linear unit (Hendrycks and Gimpel 2016, arXiv:1606.08415); dx = dy (Phi(x) + x phi(x)).
template <class T>
Variable<T> gelu(const Variable<T>& x, Gelu approximate = Gelu::none);

}  // namespace xgrad
