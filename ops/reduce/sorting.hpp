#pragma once

#include "../../graph/variable.hpp"

// Ordering along the axis `dim`, which may be negative. nan counts as the largest; of equal elements, the one
// with the lower index is first. Indices are ids; values are elements of x, and their gradients go to these
// elements only. Errors: IndexError for a missing axis, ValueError for one of 2^32 elements or more.
// https://pytorch.org/docs/stable/torch.html#reduction-ops

namespace xgrad {

/// Elements and their indices along the axis.
template <class T>
struct Ranked {
  Variable<T> values;
  Ids indices;
};

/// The largest element along the axis, nan if any is nan, with its index; keepdim keeps it with length 1.
/// Throws ValueError over no elements. https://pytorch.org/docs/stable/generated/torch.max.html
template <class T>
Ranked<T> max(const Variable<T>& x, int dim, bool keepdim = false);
/// The smallest element, as max; also nan if any is nan.
template <class T>
Ranked<T> min(const Variable<T>& x, int dim, bool keepdim = false);

/// The elements in ascending or descending order; the sort is stable.
/// https://pytorch.org/docs/stable/generated/torch.sort.html
template <class T>
Ranked<T> sort(const Variable<T>& x, int dim = -1, bool descending = false);

/// The k largest elements in descending order, or the k smallest in ascending order. Throws ValueError for k
/// below 0 or above the axis's length, which is 1 for a scalar.
/// https://pytorch.org/docs/stable/generated/torch.topk.html
template <class T>
Ranked<T> topk(const Variable<T>& x, std::ptrdiff_t k, int dim = -1, bool largest = true);

/// The indices of max, min and sort; without an axis, the index among all elements in row-major order.
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
