#pragma once

#include "../../graph/record.hpp"

// Gradients computed by a kernel.
namespace xgrad::detail {

/// An array for the gradient of an input, of which the kernel must write every element; undefined if not
/// needed.
template <class T>
Variable<T> empty_grad(Needs needs, std::size_t input) {
  return needs[input] ? empty<T>(needs.shape(input)) : Variable<T>();
}

/// empty_grad for all inputs.
template <class T, std::size_t N>
Grads<T, N> empty_grads(Needs needs) {
  Grads<T, N> grads;
  for (std::size_t i = 0; i < N; ++i) grads[i] = empty_grad<T>(needs, i);
  return grads;
}

/// The elements of a gradient for the kernel; null if it is not needed.
template <class T>
T* data_if_needed(Variable<T>& grad) {
  return grad.defined() ? data(grad) : nullptr;
}

}  // namespace xgrad::detail
