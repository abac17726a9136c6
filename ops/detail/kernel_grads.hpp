#pragma once

#include "../../graph/record.hpp"

// Gradients that a kernel fills.
namespace xgrad::detail {

/// An array for each input that needs a gradient.
template <class T, std::size_t N>
Grads<T, N> empty_grads(Needs needs) {
  Grads<T, N> grads;
  for (std::size_t i = 0; i < N; ++i)
    if (needs[i]) grads[i] = empty<T>(needs.shape(i));
  return grads;
}

/// The elements of one of them, null if it is not needed.
template <class T>
T* data_if_needed(Variable<T>& grad) {
  return grad.defined() ? data(grad) : nullptr;
}

}  // namespace xgrad::detail
