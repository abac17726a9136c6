#pragma once

#include "../../base/detail/by_name.hpp"
#include "../../base/dims.hpp"
#include "../../graph/variable.hpp"
#include "reductions.hpp"

// Ordering along the axis `dim`, which may be negative. nan counts as the largest; of equal elements, the one
// with the lower index is first. Indices are ids; values are elements of x, and their gradients go to these
// elements only. Errors: IndexError for a missing axis, ValueError for one of 2^32 elements or more.
// https://pytorch.org/docs/stable/torch.html#reduction-ops

namespace xgrad {

struct SortOptions {
  detail::ByName by_name = {};
  bool descending = false;
};

struct TopkOptions {
  detail::ByName by_name = {};
  bool largest = true;  ///< otherwise the smallest
};

/// Elements and their indices along the axis.
template <class T>
struct [[nodiscard]] Ranked {
  Variable<T> values;
  Ids indices;
};

/// The largest element along the axis, nan if any is nan, with its index.
/// Throws ValueError over no elements. https://pytorch.org/docs/stable/generated/torch.max.html
template <class T>
Ranked<T> max(const Variable<T>& x, Int dim, ReduceOptions options = {});
/// The smallest element, as max; also nan if any is nan.
template <class T>
Ranked<T> min(const Variable<T>& x, Int dim, ReduceOptions options = {});

/// The elements in ascending or descending order; the sort is stable.
/// https://pytorch.org/docs/stable/generated/torch.sort.html
template <class T>
Ranked<T> sort(const Variable<T>& x, Int dim = -1, SortOptions options = {});

/// The k largest elements in descending order, or the k smallest in ascending order. Throws ValueError for k
/// below 0 or above the axis's length, which is 1 for a scalar.
/// https://pytorch.org/docs/stable/generated/torch.topk.html
template <class T>
Ranked<T> topk(const Variable<T>& x, Int k, Int dim = -1, TopkOptions options = {});

/// The indices of max, min and sort; without an axis, the index among all elements in row-major order.
/// https://pytorch.org/docs/stable/generated/torch.argmax.html
template <class T>
[[nodiscard]] Ids argmax(const Variable<T>& x);
template <class T>
[[nodiscard]] Ids argmax(const Variable<T>& x, Int dim, ReduceOptions options = {});
template <class T>
[[nodiscard]] Ids argmin(const Variable<T>& x);
template <class T>
[[nodiscard]] Ids argmin(const Variable<T>& x, Int dim, ReduceOptions options = {});
template <class T>
[[nodiscard]] Ids argsort(const Variable<T>& x, Int dim = -1, SortOptions options = {});

struct SearchOptions {
  detail::ByName by_name = {};
  bool right = false;  ///< the last place where the value would keep the order, not the first
};

/// Where values (..., m) would be in rows that ascend (..., n), or values of any shape in one row (n): how
/// many of the row are less, or with `right` not greater. Throws ShapeError if the leading axes differ.
/// https://pytorch.org/docs/stable/generated/torch.searchsorted.html
template <class T>
[[nodiscard]] Ids searchsorted(const Variable<T>& sorted, const Variable<T>& values,
                               SearchOptions options = {});

/// What unique finds. An array of values: they have no gradient.
template <class T>
struct [[nodiscard]] Distinct {
  Array<T> values;  ///< ascending
  Ids inverse;      ///< the place in values of each element of x, in x's shape, or of each slice
  Ids counts;       ///< how often each occurs
};

/// The distinct elements of x; each nan is one. https://pytorch.org/docs/stable/generated/torch.unique.html
template <class T>
Distinct<T> unique(const Variable<T>& x);

/// The distinct slices of x at the places along the axis: values have the axes of x, and ascend by the first
/// elements that differ. Throws ShapeError for slices without elements.
template <class T>
Distinct<T> unique(const Variable<T>& x, Int dim);

}  // namespace xgrad
