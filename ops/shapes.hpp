#pragma once

#include <initializer_list>

#include <xgrad/graph/dims.hpp>
#include <xgrad/graph/variable.hpp>

// The same elements in another shape or order; gradients take the way back. Results are copies, never views.
// https://pytorch.org/docs/stable/torch.html#indexing-slicing-joining-mutating-ops

namespace xgrad {

/// The elements in row-major order under another shape; one length may be -1 and is inferred.
template <class T>
Variable<T> reshape(const Variable<T>& x, const Dims& shape);

/// Axis k of the result is axis dims[k] of x.
template <class T>
Variable<T> permute(const Variable<T>& x, const Dims& dims);

/// Two axes swapped.
template <class T>
Variable<T> transpose(const Variable<T>& x, int dim0, int dim1);

/// Joined along `dim`; the other lengths must agree.
template <class T>
Variable<T> concat(const std::vector<Variable<T>>& parts, int dim = 0);
template <class T>
Variable<T> concat(std::initializer_list<Variable<T>> parts, int dim = 0) {
  return concat(std::vector<Variable<T>>(parts), dim);
}

}  // namespace xgrad
