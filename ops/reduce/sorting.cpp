#include "sorting.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <span>
#include <utility>
#include <vector>

#include "../../base/creation.hpp"
#include "../../graph/record.hpp"
#include "../../graph/watch.hpp"
#include "../../kernels/rows/reduce.hpp"
#include "../../kernels/rows/sort.hpp"
#include "../index/indexing.hpp"
#include "../pointwise/broadcast.hpp"
#include "detail/elements_at.hpp"

namespace xgrad {
namespace {

using detail::middle_axis, detail::MiddleAxis, detail::with_length, detail::without_axis;

/// The indices of the largest or smallest elements along the middle axis of x, (outer, inner) as `shape`.
template <class T>
Ids extreme_indices(const char* op, const Variable<T>& x, const MiddleAxis& m, bool largest,
                    const Shape& shape) {
  if (m.length == 0) detail::fail<ValueError>(op, ": there are no elements to choose from in x ", x.shape());
  Ids ids = Ids::from_shape(shape);
  Variable<T> extremes = detail::empty<T>(shape);
  const detail::ReduceMiddle<T> reduce = largest ? kernels::max_middle<T> : kernels::min_middle<T>;
  reduce(detail::data(x), m.outer, m.length, m.inner, detail::data(extremes));
  kernels::first_index(detail::data(x), detail::data(extremes), m.outer, m.length, m.inner, ids.data());
  return ids;
}

template <class T>
Ranked<T> extreme(const char* op, const Variable<T>& x, Int dim, bool largest, bool keepdim) {
  const MiddleAxis m = middle_axis(op, dim, x.shape());
  return detail::elements_at(x, dim, extreme_indices(op, x, m, largest, with_length(x.shape(), m, 1)), m,
                             keepdim);
}

template <class T>
Ids arg_extreme(const char* op, const Variable<T>& x, Int dim, bool largest, bool keepdim) {
  const MiddleAxis m = middle_axis(op, dim, x.shape());
  return extreme_indices(op, x, m, largest,
                         keepdim ? with_length(x.shape(), m, 1) : without_axis(x.shape(), m));
}

/// The indices of the first k elements in this order.
template <class T>
Ids first_indices(const char* op, const Variable<T>& x, const MiddleAxis& m, std::size_t k, bool descending) {
  if (m.length > std::numeric_limits<std::uint32_t>::max()) {
    detail::fail<ValueError>(op, ": axis ", m.axis, " must be shorter than 2^32, got ", m.length);
  }
  Ids ids = Ids::from_shape(with_length(x.shape(), m, k));
  kernels::sorted_indices(detail::data(x), m.outer, m.length, m.inner, k, descending, ids.data());
  return ids;
}

/// Slices of so many elements, one behind the other.
template <class T>
struct Slices {
  const T* elements;
  std::size_t size;

  std::span<const T> operator[](std::int64_t i) const {
    return {elements + static_cast<std::size_t>(i) * size, size};
  }
  /// By the first elements that differ; nan is above all others.
  bool is_less(std::int64_t a, std::int64_t b) const {
    const auto less = [](T x, T y) { return x < y || (std::isnan(y) && !std::isnan(x)); };
    return std::lexicographical_compare((*this)[a].begin(), (*this)[a].end(), (*this)[b].begin(),
                                        (*this)[b].end(), less);
  }
};

/// What is distinct of the slices of x along the axis, for the order in which they ascend.
template <class T>
Distinct<T> distinct(const Variable<T>& x, Int dim, const Ids& order, const Slices<T>& slices) {
  std::vector<std::int64_t> firsts, counts;
  Ids inverse = Ids::from_shape(order.shape());
  for (const std::int64_t place : order) {
    const auto slice = slices[place];
    if (firsts.empty() || !std::equal(slice.begin(), slice.end(), slices[firsts.back()].begin())) {
      firsts.push_back(place);
      counts.push_back(0);
    }
    ++counts.back();
    inverse.data()[place] = static_cast<std::int64_t>(firsts.size()) - 1;
  }
  const Shape shape{firsts.size()};
  return {index_select(x, dim, Ids(xt::adapt(firsts, shape))).value(), std::move(inverse),
          Ids(xt::adapt(counts, shape))};
}

template <class T>
Ranked<T> ranked(const Variable<T>& x, Int dim, Ids ids) {
  Variable<T> values = gather(x, dim, ids);
  return {std::move(values), std::move(ids)};
}

}  // namespace

template <class T>
Ranked<T> max(const Variable<T>& x, Int dim, ReduceOptions options) {
  return extreme("max", x, dim, true, options.keepdim);
}

template <class T>
Ranked<T> min(const Variable<T>& x, Int dim, ReduceOptions options) {
  return extreme("min", x, dim, false, options.keepdim);
}

template <class T>
Ranked<T> sort(const Variable<T>& x, Int dim, SortOptions options) {
  const MiddleAxis m = middle_axis("sort", dim, x.shape());
  return ranked(x, dim, first_indices("sort", x, m, m.length, options.descending));
}

template <class T>
Ranked<T> topk(const Variable<T>& x, Int k, Int dim, TopkOptions options) {
  const MiddleAxis m = middle_axis("topk", dim, x.shape());
  const std::ptrdiff_t least = x.dimension() == 0 ? 1 : 0, most = static_cast<std::ptrdiff_t>(m.length);
  if (k < least || k > most) {
    detail::fail<ValueError>("topk: k must be in [", least, ", ", most, "], got ", k, " for axis ", m.axis,
                             " of x ", x.shape());
  }
  return ranked(x, dim, first_indices("topk", x, m, static_cast<std::size_t>(k), options.largest));
}

template <class T>
Ids argmax(const Variable<T>& x) {
  return extreme_indices("argmax", x, {.length = x.size()}, true, Shape{});
}

template <class T>
Ids argmax(const Variable<T>& x, Int dim, ReduceOptions options) {
  return arg_extreme("argmax", x, dim, true, options.keepdim);
}

template <class T>
Ids argmin(const Variable<T>& x) {
  return extreme_indices("argmin", x, {.length = x.size()}, false, Shape{});
}

template <class T>
Ids argmin(const Variable<T>& x, Int dim, ReduceOptions options) {
  return arg_extreme("argmin", x, dim, false, options.keepdim);
}

template <class T>
Ids argsort(const Variable<T>& x, Int dim, SortOptions options) {
  const MiddleAxis m = middle_axis("argsort", dim, x.shape());
  return first_indices("argsort", x, m, m.length, options.descending);
}

template <class T>
Ids searchsorted(const Variable<T>& sorted, const Variable<T>& values, SearchOptions options) {
  const Shape &rows = sorted.shape(), &shape = values.shape();
  const bool one_row = rows.size() == 1;
  bool fits = !rows.empty() && (one_row || rows.size() == shape.size());
  for (std::size_t k = 0; fits && !one_row && k + 1 < rows.size(); ++k) fits = rows[k] == shape[k];
  if (!fits) {
    detail::fail<ShapeError>(
        "searchsorted: sorted must have one axis, or all axes of values but the last, got ", "sorted ", rows,
        " and values ", shape);
  }
  const std::size_t m = shape.empty() ? 1 : shape.back(), outer = m > 0 ? values.size() / m : 0;
  Ids ids = Ids::from_shape(shape);
  kernels::search_sorted(detail::data(sorted), rows.back(), one_row, detail::data(values), outer, m,
                         options.right, ids.data());
  return ids;
}

template <class T>
Distinct<T> unique(const Variable<T>& x) {
  const NoGrad no_grad;
  const detail::Unwatched parts;
  const Variable<T> all = reshape(x, x.size());
  Distinct<T> found = distinct(all, 0, argsort(all, 0), {detail::data(x), 1});
  found.inverse.reshape(x.shape());
  return found;
}

template <class T>
Distinct<T> unique(const Variable<T>& x, Int dim) {
  const NoGrad no_grad;
  const detail::Unwatched parts;
  const MiddleAxis m = middle_axis("unique", dim, x.shape());
  const std::size_t size = m.outer * m.inner;
  if (size == 0 && m.length > 0) {
    detail::fail<ShapeError>("unique: slices must have elements, got x ", x.shape(), " and dim ",
                             static_cast<std::ptrdiff_t>(dim));
  }
  const Variable<T> rows = permute(reshape(x, {m.outer, m.length, m.inner}), {1, 0, 2});
  const Slices<T> slices{detail::data(rows), size};
  Ids order = xgrad::arange<std::int64_t>({m.length});
  std::stable_sort(order.begin(), order.end(),
                   [&](std::int64_t a, std::int64_t b) { return slices.is_less(a, b); });
  return distinct(x, dim, order, slices);
}

#define XGRAD_INSTANTIATE(T)                                                        \
  template Ranked<T> max(const Variable<T>&, Int, ReduceOptions);                   \
  template Ranked<T> min(const Variable<T>&, Int, ReduceOptions);                   \
  template Ranked<T> sort(const Variable<T>&, Int, SortOptions);                    \
  template Ranked<T> topk(const Variable<T>&, Int, Int, TopkOptions);               \
  template Ids argmax(const Variable<T>&);                                          \
  template Ids argmax(const Variable<T>&, Int, ReduceOptions);                      \
  template Ids argmin(const Variable<T>&);                                          \
  template Ids argmin(const Variable<T>&, Int, ReduceOptions);                      \
  template Ids argsort(const Variable<T>&, Int, SortOptions);                       \
  template Ids searchsorted(const Variable<T>&, const Variable<T>&, SearchOptions); \
  template Distinct<T> unique(const Variable<T>&);                                  \
  template Distinct<T> unique(const Variable<T>&, Int);

XGRAD_INSTANTIATE(float)
XGRAD_INSTANTIATE(double)

}  // namespace xgrad
