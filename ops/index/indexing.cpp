#include "indexing.hpp"

#include <algorithm>
#include <limits>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "../../base/detail/arrays/broadcast.hpp"
#include "../../graph/record.hpp"
#include "../../kernels/index/embedding.hpp"
#include "../../kernels/index/gather.hpp"
#include "../../kernels/index/permute.hpp"
#include "../../kernels/pointwise/binary.hpp"
#include "../shape/shapes.hpp"
#include "detail/indices.hpp"

namespace xgrad {
namespace ops {

constexpr Op select_grad("select_grad", {"y"}, {"dim", "start", "end", "step"});
constexpr Op slice_grad("slice_grad", {"y"}, {"dim", "start", "end", "step"});
constexpr Op index_grad("index_grad", {"y"}, {"starts", "steps"});
constexpr Op index_select_grad("index_select_grad", {"y"}, {"dim", "index"});
constexpr Op gather_grad("gather_grad", {"y"}, {"dim"});

}  // namespace ops

namespace {

bool outside(std::int64_t id, std::size_t length) { return static_cast<std::uint64_t>(id) >= length; }

[[noreturn]] void fail_index(const char* op, const Ids& index, std::size_t length) {
  const auto& ids = index.storage();
  const auto first = std::find_if(ids.begin(), ids.end(), [&](auto id) { return outside(id, length); });
  detail::fail<IndexError>(op, ": index must be in [0, ", length, "), got ", *first);
}

}  // namespace

void detail::check_index(const char* op, const Ids& index, std::size_t length) {
  bool any = false;
  for (const std::int64_t id : index.storage()) any |= outside(id, length);
  if (any) fail_index(op, index, length);
}

template <class T>
void detail::add_rows(const MiddleAxis& m, const Ids& index, const T* x, T* y) {
  const std::size_t count = index.size();
  for (std::size_t o = 0; o < m.outer; ++o) {
    kernels::scatter_add_rows<T>({x + o * count * m.inner, count, m.inner}, index.data(),
                                 y + o * m.length * m.inner);
  }
}

std::shared_ptr<const Array<std::uint32_t>> detail::narrow_index(const char* op, const Ids& index,
                                                                 std::size_t axis, std::size_t length) {
  constexpr std::size_t most = std::numeric_limits<std::uint32_t>::max();
  if (length > most) fail<ValueError>(op, ": axis ", axis, " must be shorter than 2^32, got ", length);
  auto narrow = std::make_shared<Array<std::uint32_t>>(Array<std::uint32_t>::from_shape(index.shape()));
  if (!kernels::narrow_index(index.data(), length, narrow->data(), index.size()))
    fail_index(op, index, length);
  return narrow;
}

namespace {

using detail::Strides;

/// Where a part of an array lies in it.
struct Part {
  explicit Part(const Shape& whole) : strides(detail::row_major_strides(whole)), shape(whole) {}

  /// Leaves the element `position` of an axis, which goes.
  void keep_element(std::size_t axis, std::ptrdiff_t position) {
    offset += static_cast<std::size_t>(position * strides[axis]);
    strides.erase(strides.begin() + axis);
    shape.erase(shape.begin() + axis);
  }

  /// Leaves those of an axis from `first` on, before `last`.
  void keep_range(std::size_t axis, std::ptrdiff_t first, std::ptrdiff_t last, std::ptrdiff_t step) {
    shape[axis] = static_cast<std::size_t>((last - first) / step + ((last - first) % step != 0 ? 1 : 0));
    if (shape[axis] > 0) offset += static_cast<std::size_t>(first * strides[axis]);
    if (shape[axis] > 1) strides[axis] *= step;
  }

  std::size_t offset = 0;
  Strides strides;
  Shape shape;
};

/// The part along one axis, with the names of taking it and of putting it back. Bounds are told as they were
/// asked for: clamped ones would depend on the length of the axis.
struct AxisPart : Part {
  AxisPart(StaticOp<1, 4> take, StaticOp<1, 4> put, const Shape& whole, std::size_t dim, Int start,
           std::optional<std::ptrdiff_t> end = {}, std::ptrdiff_t step = 1)
      : Part(whole), op(take), grad_op(put), dim(dim), start(start), end(end), step(step) {}

  auto attributes() const { return Attributes(dim, start, end, step); }

  StaticOp<1, 4> op, grad_op;
  std::size_t dim;
  std::ptrdiff_t start;
  std::optional<std::ptrdiff_t> end;  // none for an element
  std::ptrdiff_t step;
};

/// The part that index takes: for each item where it begins, and its step, 0 for an element.
struct ItemsPart : Part {
  using Part::Part;

  auto attributes() const { return Attributes(starts, steps); }

  static constexpr StaticOp<1, 2> op = ops::index, grad_op = ops::index_grad;
  std::vector<std::ptrdiff_t> starts = {}, steps = {};
};

template <class T, class P>
Variable<T> put_back(const Variable<T>& x, const P& part, const Shape& whole);

/// The part of x. Its gradient is put_back, whose own gradient is take: the two are closed under
/// differentiation.
template <class T, class P>
Variable<T> take(const Variable<T>& x, const P& part) {
  Variable<T> y = detail::empty<T>(part.shape);
  if (y.size() > 0)
    kernels::permute<T>(part.shape, {detail::data(x) + part.offset, part.strides}, detail::data(y));
  return record<T>(
      part.op, std::move(y), Inputs(x), part.attributes(), Saved(),
      [part](Variable<T> dy, Needs needs) -> Grads<T, 1> { return {put_back(dy, part, needs.shape(0))}; });
}

/// Zeros of shape `whole` but for x in its part.
template <class T, class P>
Variable<T> put_back(const Variable<T>& x, const P& part, const Shape& whole) {
  Variable<T> y = detail::empty<T>(whole);
  kernels::fill(T{0}, detail::data(y), y.size());
  if (x.size() > 0)
    kernels::scatter_add<T>(part.shape, detail::data(x), {detail::data(y) + part.offset, part.strides});
  return record<T>(part.grad_op, std::move(y), Inputs(x), part.attributes(), Saved(),
                   [part](Variable<T> dy, Needs) -> Grads<T, 1> { return {take(dy, part)}; });
}

/// The place of an element of an axis of x, where a negative index counts from the end.
std::ptrdiff_t place_of(const char* op, std::ptrdiff_t index, std::size_t axis, const Shape& shape) {
  const auto length = static_cast<std::ptrdiff_t>(shape[axis]);
  if (index < -length || index >= length)
    detail::fail<IndexError>(op, ": index ", index, " is out of range for axis ", axis, " of x ", shape);
  return index < 0 ? index + length : index;
}

/// The bounds of a range of an axis, clamped to its length.
std::pair<std::ptrdiff_t, std::ptrdiff_t> bounds_of(const char* op, const IndexRange& range,
                                                    std::size_t length) {
  if (range.step < 1) detail::fail<ValueError>(op, ": step must be at least 1, got ", range.step);
  const auto clamped = [end = static_cast<std::ptrdiff_t>(length)](std::ptrdiff_t bound) {
    return std::clamp<std::ptrdiff_t>(bound < 0 ? bound + end : bound, 0, end);
  };
  const std::ptrdiff_t first = clamped(range.start);
  return {first, std::max(clamped(range.end), first)};
}

/// x (outer, length, inner) at the indices along its middle axis. Its gradient is put_rows, whose own
/// gradient is take_rows, and so on.
struct Rows {
  detail::MiddleAxis m;
  Ids index;
};

template <class T>
Variable<T> put_rows(const Variable<T>& y, const Rows& rows, const Shape& whole);

template <class T>
Variable<T> take_rows(const Variable<T>& x, const Rows& rows) {
  const auto& [axis, outer, length, inner] = rows.m;
  const std::size_t count = rows.index.size();
  Shape shape = x.shape();
  shape[axis] = count;
  Variable<T> y = detail::empty<T>(shape, "index_select");
  for (std::size_t o = 0; o < outer; ++o) {
    kernels::gather_rows<T>(detail::data(x) + o * length * inner, rows.index.data(),
                            {detail::data(y) + o * count * inner, count, inner});
  }
  return record<T>(ops::index_select, std::move(y), Inputs(x), Attributes(axis, rows.index), Saved(rows),
                   [](Variable<T> dy, Needs needs, const Rows& rows) -> Grads<T, 1> {
                     return {put_rows(dy, rows, needs.shape(0))};
                   });
}

template <class T>
Variable<T> put_rows(const Variable<T>& y, const Rows& rows, const Shape& whole) {
  Variable<T> x = detail::empty<T>(whole);
  kernels::fill(T{0}, detail::data(x), x.size());
  detail::add_rows(rows.m, rows.index, detail::data(y), detail::data(x));
  return record<T>(
      ops::index_select_grad, std::move(x), Inputs(y), Attributes(rows.m.axis, rows.index), Saved(rows),
      [](Variable<T> dx, Needs, const Rows& rows) -> Grads<T, 1> { return {take_rows(dx, rows)}; });
}

/// How elements are gathered: the strides of x along the axes of index, 0 along `dim`, where index counts.
struct Gathered {
  std::shared_ptr<const Array<std::uint32_t>> index;
  Strides strides;
  std::ptrdiff_t dim_stride;
  std::size_t axis;
};

template <class T>
Variable<T> gather_back(const Variable<T>& y, const Gathered& how, const Shape& whole);

template <class T>
Variable<T> gather_elements(const Variable<T>& x, const Gathered& how, const Ids* index = nullptr) {
  const Shape& shape = how.index->shape();
  Variable<T> y = detail::empty<T>(shape);
  kernels::gather<T>(shape, {detail::data(x), how.strides}, how.dim_stride, how.index->data(),
                     detail::data(y));
  return record<T>(
      ops::gather, std::move(y), Inputs(x), Attributes(how.axis, index), Saved(),
      [how](Variable<T> dy, Needs needs) -> Grads<T, 1> { return {gather_back(dy, how, needs.shape(0))}; });
}

template <class T>
Variable<T> gather_back(const Variable<T>& y, const Gathered& how, const Shape& whole) {
  const Shape& shape = how.index->shape();
  Variable<T> x = detail::empty<T>(whole);
  kernels::fill(T{0}, detail::data(x), x.size());
  kernels::gather_grad<T>(shape, detail::data(y), how.dim_stride, how.index->data(),
                          {detail::data(x), how.strides});
  return record<T>(ops::gather_grad, std::move(x), Inputs(y), Attributes(how.axis), Saved(),
                   [how](Variable<T> dx, Needs) -> Grads<T, 1> { return {gather_elements(dx, how)}; });
}

}  // namespace

template <class T>
Variable<T> select(const Variable<T>& x, Int dim, Int index) {
  const std::size_t axis = detail::normalize_axis("select", dim, x.shape());
  const std::ptrdiff_t position = place_of("select", index, axis, x.shape());
  AxisPart part(ops::select, ops::select_grad, x.shape(), axis, index);
  part.keep_element(axis, position);
  return take(x, part);
}

template <class T>
Variable<T> slice(const Variable<T>& x, Int dim, Int start, Int end, Int step) {
  const std::size_t axis = detail::normalize_axis("slice", dim, x.shape());
  const auto [first, last] = bounds_of("slice", {start, end, step}, x.shape()[axis]);
  AxisPart part(ops::slice, ops::slice_grad, x.shape(), axis, start, end, step);
  part.keep_range(axis, first, last, step);
  return take(x, part);
}

template <class T>
Variable<T> narrow(const Variable<T>& x, Int dim, Int start, Int length) {
  const auto whole = static_cast<std::ptrdiff_t>(x.shape()[detail::normalize_axis("narrow", dim, x.shape())]);
  const std::ptrdiff_t first = start + (start < 0 ? whole : 0);
  if (first < 0 || length < 0 || first > whole || length > whole - first) {
    detail::fail<IndexError>("narrow: start ", start, " and length ", length, " are out of range for axis ",
                             dim, " of x ", x.shape());
  }
  const bool is_to_end = start < 0 && start + length == 0;
  return slice(x, dim, start, is_to_end ? IndexRange().end : start + length);
}

template <class T>
Variable<T> index_select(const Variable<T>& x, Int dim, const Ids& index) {
  if (x.dimension() == 0 && index.size() == 1)
    return reshape(index_select(reshape(x, 1), dim, index), Shape{});
  const std::size_t axis = detail::normalize_axis("index_select", dim, x.shape());
  if (index.dimension() > 1)
    detail::fail<ShapeError>("index_select: index must have at most one axis, got ", index.shape());
  detail::check_index("index_select", index, x.shape()[axis]);
  const Rows rows{detail::middle_axis(axis, x.shape()), index};
  return take_rows(x, rows);
}

template <class T>
Variable<T> gather(const Variable<T>& x, Int dim, const Ids& index) {
  if (x.dimension() <= 1 && index.dimension() <= 1 && x.dimension() + index.dimension() < 2) {
    return reshape(gather(reshape(x, x.size()), dim, Ids(xt::reshape_view(index, {index.size()}))),
                   index.shape());
  }
  const std::size_t axis = detail::normalize_axis("gather", dim, x.shape());
  if (index.size() == 0) return reshape(slice(flatten(x), 0, 0, 0), index.shape());
  bool fits = index.dimension() == x.dimension();
  for (std::size_t k = 0; fits && k < x.dimension(); ++k)
    fits = k == axis || index.shape()[k] <= x.shape()[k];
  if (!fits) {
    detail::fail<ShapeError>(
        "gather: index must have the rank of x and be no longer than x except along axis ", axis, ", got x ",
        x.shape(), " and index ", index.shape());
  }
  Gathered how{detail::narrow_index("gather", index, axis, x.shape()[axis]),
               detail::row_major_strides(x.shape()), 0, axis};
  how.dim_stride = std::exchange(how.strides[axis], 0);
  return gather_elements(x, how, &index);
}

template <class T>
Variable<T> index(const Variable<T>& x, const std::vector<Index>& items) {
  if (items.size() > x.dimension()) {
    detail::fail<IndexError>("index: there must be no more items than axes, got ", items.size(), " for x ",
                             x.shape());
  }
  if (items.empty()) return reshape(x, x.shape());
  ItemsPart part(x.shape());
  std::size_t kept = 0;
  for (std::size_t axis = 0; axis < items.size(); ++axis) {
    const auto& [range, is_range] = items[axis];
    if (is_range) {
      const auto [first, last] = bounds_of("index", range, x.shape()[axis]);
      part.keep_range(kept++, first, last, range.step);
      part.starts.push_back(first);
    } else {
      part.starts.push_back(place_of("index", range.start, axis, x.shape()));
      part.keep_element(kept, part.starts.back());
    }
    part.steps.push_back(is_range ? range.step : 0);
  }
  return take(x, part);
}

template <class T>
Variable<T> repeat_interleave(const Variable<T>& x, const Ids& repeats, std::optional<Int> dim) {
  if (!dim) return repeat_interleave(reshape(x, x.size()), repeats, 0);
  const detail::MiddleAxis m = detail::middle_axis("repeat_interleave", *dim, x.shape());
  if (repeats.dimension() > 1 || (repeats.size() != 1 && repeats.size() != m.length)) {
    detail::fail<ShapeError>("repeat_interleave: repeats must be one number, or one for each of the ",
                             m.length, " elements along axis ", m.axis, " of x ", x.shape(), ", got ",
                             repeats.shape());
  }
  const auto times = [&](std::size_t i) { return repeats.data()[repeats.size() == 1 ? 0 : i]; };
  constexpr auto most = std::numeric_limits<std::int64_t>::max();
  std::int64_t total = 0;
  for (std::size_t i = 0; i < m.length; ++i) {
    if (times(i) < 0)
      detail::fail<ValueError>("repeat_interleave: repeats must not be negative, got ", times(i));
    total = times(i) > most - total ? most : total + times(i);
  }
  Shape shape = x.dimension() == 0 ? Shape{1} : x.shape();
  shape[m.axis] = static_cast<std::size_t>(total);
  for (const Shape& counted : {shape, Shape{shape[m.axis]}})
    detail::check_count("repeat_interleave", counted);
  Ids index = Ids::from_shape({shape[m.axis]});
  std::int64_t* next = index.data();
  for (std::size_t i = 0; i < m.length; ++i) next = std::fill_n(next, times(i), static_cast<std::int64_t>(i));
  return index_select(x.dimension() == 0 ? reshape(x, 1) : x, *dim, index);
}

Ids nonzero(const Mask& mask) {
  const std::size_t rank = mask.dimension();
  const auto count = static_cast<std::size_t>(std::count(mask.storage().begin(), mask.storage().end(), true));
  Ids y = Ids::from_shape({count, rank});
  std::int64_t* row = y.data();
  for (std::size_t i = 0; i < mask.size(); ++i) {
    if (!mask.data()[i]) continue;
    std::size_t rest = i;
    for (std::size_t axis = rank; axis-- > 0; rest /= mask.shape()[axis])
      row[axis] = static_cast<std::int64_t>(rest % mask.shape()[axis]);
    row += rank;
  }
  return y;
}

template <class T>
Ids nonzero(const Variable<T>& x) {
  return nonzero(Mask(xt::not_equal(x.value(), T{0})));
}

#define XGRAD_INSTANTIATE(T)                                                                  \
  template Variable<T> repeat_interleave(const Variable<T>&, const Ids&, std::optional<Int>); \
  template Ids nonzero(const Variable<T>&);                                                   \
  template void detail::add_rows(const MiddleAxis&, const Ids&, const T*, T*);                \
  template Variable<T> select(const Variable<T>&, Int, Int);                                  \
  template Variable<T> slice(const Variable<T>&, Int, Int, Int, Int);                         \
  template Variable<T> narrow(const Variable<T>&, Int, Int, Int);                             \
  template Variable<T> index_select(const Variable<T>&, Int, const Ids&);                     \
  template Variable<T> gather(const Variable<T>&, Int, const Ids&);                           \
  template Variable<T> index(const Variable<T>&, const std::vector<Index>&);

XGRAD_INSTANTIATE(float)
XGRAD_INSTANTIATE(double)

}  // namespace xgrad
