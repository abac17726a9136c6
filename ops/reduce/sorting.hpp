#pragma once

#include "../../graph/variable.hpp"

// The order of the elements along the axis `dim`, which may be negative. nan counts as larger than all else,
// and of equal elements the one with the lower index comes first. Indices are ids; values are those elements
// of x, and their gradients go to them alone. Errors: IndexError for an axis that x does not have, ValueError
// for one of 2^32 elements or more. https://pytorch.org/docs/stable/torch.html#reduction-ops

namespace xgrad {

/// Elements, and where along the axis they were.
template <class T>
struct Ranked {
  Variable<T> values;
  Ids indices;
};

/// The largest element along the axis, nan if one is nan, with its index; keepdim leaves the axis with length
/// 1. Throws ValueError over no elements. https://pytorch.org/docs/stable/generated/torch.max.html
template <class T>
Ranked<T> max(const Variable<T>& x, int dim, bool keepdim = false);
/// The smallest element, as max; nan, too, if one is nan.
template <class T>
Ranked<T> min(const Variable<T>& x, int dim, bool keepdim = false);

/// The elements in ascending order or descending order; equal ones stay in theirs.
/// https://pytorch.org/docs/stable/generated/torch.sort.html
template <class T>
Ranked<T> sort(const Variable<T>& x, int dim = -1, bool descending = false);

/// The k largest elements or the k smallest, in this order. Throws ValueError for a k below 0 or above the
/// axis's length; of a scalar there is one. https://pytorch.org/docs/stable/generated/torch.topk.html
template <class T>
Ranked<T> topk(const Variable<T>& x, std::ptrdiff_t k, int dim = -1, bool largest = true);

/// The indices of max, min and sort; without an axis, that of all elements in row-major order.
/// https://pytorch.org/docs/stable/generated/torch.argmax.html
template <class T>
Ids argmax(const Variable<T>& x);
template <class T>
Ids argmax(const Variable<T>& x, int dim, bool keepdim = false);
template <class T>
Ids argmin(const Variable<T>& x);
template <class T>
Ids argmin(const Variable<T>& x, int dim, bool keepdim = false);
template <class T>
Ids argsort(const Variable<T>& x, int dim = -1, bool descending = false);

}  // namespace xgrad
