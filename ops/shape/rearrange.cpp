#include "rearrange.hpp"

#include <algorithm>
#include <vector>

#include "../../graph/record.hpp"
#include "../../kernels/index/permute.hpp"
#include "../../kernels/pointwise/binary.hpp"
#include "../../kernels/rows/reduce.hpp"
#include "../index/indexing.hpp"
#include "../pointwise/broadcast.hpp"
#include "../reduce/detail/middle_axis.hpp"
#include "shapes.hpp"

namespace xgrad {
namespace ops {

constexpr Op repeat_grad("repeat_grad", {"y"}, {"repeats"});

}  // namespace ops

namespace {

using detail::MiddleAxis, detail::Strides;

/// x moved on along the middle axis m.
template <class T>
Variable<T> rolled(const Variable<T>& x, const MiddleAxis& m, Int shift) {
  const auto length = static_cast<std::ptrdiff_t>(std::max<std::size_t>(m.length, 1));
  const auto moved = static_cast<std::size_t>((shift % length + length) % length);
  const std::size_t row = m.length * m.inner, front = moved * m.inner, back = row - std::min(front, row);
  Variable<T> y = detail::empty<T>(x.shape());
  const T* from = detail::data(x);
  T* to = detail::data(y);
  kernels::copy_rows<T>({from + back, m.outer, front, row}, {to, m.outer, front, row});
  kernels::copy_rows<T>({from, m.outer, back, row}, {to + front, m.outer, back, row});
  return record<T>(ops::roll, std::move(y), Inputs(x), Attributes(shift, m.axis), Saved(),
                   [m, shift](Variable<T> dy, Needs) -> Grads<T, 1> { return {rolled(dy, m, -shift)}; });
}

/// What is added before and after each axis of an array.
struct Border {
  std::vector<std::ptrdiff_t> before, after;

  Border reversed() const {
    Border other = *this;
    for (std::ptrdiff_t& n : other.before) n = -n;
    for (std::ptrdiff_t& n : other.after) n = -n;
    return other;
  }
};

/// As the argument of pad names it.
Border border_of(const Dims& pad, const Shape& shape) {
  const std::size_t rank = shape.size();
  if (pad.size() % 2 != 0 || pad.size() > 2 * rank) {
    detail::fail<ValueError>("pad: pad must have two numbers for each of the last axes of x, got ",
                             to_string(pad), " for x ", shape);
  }
  Border border{std::vector<std::ptrdiff_t>(rank, 0), std::vector<std::ptrdiff_t>(rank, 0)};
  for (std::size_t k = 0; k < pad.size() / 2; ++k) {
    border.before[rank - 1 - k] = pad[2 * k];
    border.after[rank - 1 - k] = pad[2 * k + 1];
  }
  return border;
}

Shape padded_shape(const Border& border, const Dims& pad, const Shape& shape) {
  Shape longer = shape;
  for (std::size_t axis = 0; axis < shape.size(); ++axis) {
    auto length = static_cast<std::ptrdiff_t>(shape[axis]);
    if (__builtin_add_overflow(length, border.before[axis], &length) ||
        __builtin_add_overflow(length, border.after[axis], &length) || length < 0) {
      detail::fail<ShapeError>("pad: the padded length of axis ", axis, " must be in [0, 2^63), got x ",
                               shape, " and pad ", to_string(pad));
    }
    longer[axis] = static_cast<std::size_t>(length);
  }
  return longer;
}

/// x within a border of the value. The gradient cuts off what is added here, and adds zeros for what is cut.
template <class T>
Variable<T> bordered(const Variable<T>& x, const Border& border, const Shape& shape, T value) {
  Variable<T> y = detail::empty<T>(shape, "pad");
  kernels::fill(value, detail::data(y), y.size());
  const Strides x_strides = detail::row_major_strides(x.shape()),
                y_strides = detail::row_major_strides(shape);
  Shape common = x.shape();
  std::ptrdiff_t x_offset = 0, y_offset = 0;
  for (std::size_t axis = 0; axis < shape.size(); ++axis) {
    const std::ptrdiff_t before = border.before[axis], after = border.after[axis];
    const auto kept = static_cast<std::ptrdiff_t>(common[axis]) + std::min<std::ptrdiff_t>(before, 0) +
                      std::min<std::ptrdiff_t>(after, 0);
    common[axis] = static_cast<std::size_t>(std::max<std::ptrdiff_t>(kept, 0));
    x_offset += std::max<std::ptrdiff_t>(-before, 0) * x_strides[axis];
    y_offset += std::max<std::ptrdiff_t>(before, 0) * y_strides[axis];
  }
  if (element_count(common) > 0) {
    kernels::copy<T>(common, {detail::data(x) + x_offset, x_strides},
                     {detail::data(y) + y_offset, y_strides});
  }
  return record<T>(ops::pad, std::move(y), Inputs(x), Attributes(border.before, border.after, value), Saved(),
                   [border](Variable<T> dy, Needs needs) -> Grads<T, 1> {
                     return {bordered(dy, border.reversed(), needs.shape(0), T{0})};
                   });
}

/// How an array is repeated: each axis of the result as two, of how often and of what.
struct Repeats {
  Dims repeats;
  Shape from, to, parts;
  Shape once = {};     // parts, but each once
  Strides steps = {};  // of x along the parts
};

template <class T>
Variable<T> added_repeats(const Variable<T>& y, const Repeats& how);

/// x repeated. Its gradient is added_repeats, whose own gradient is this.
template <class T>
Variable<T> repeated(const Variable<T>& x, const Repeats& how) {
  Variable<T> y = detail::empty<T>(how.to, "repeat");
  kernels::permute<T>(how.parts, {detail::data(x), how.steps}, detail::data(y));
  return record<T>(ops::repeat, std::move(y), Inputs(x), Attributes(how.repeats), Saved(),
                   [how](Variable<T> dy, Needs) -> Grads<T, 1> { return {added_repeats(dy, how)}; });
}

template <class T>
Variable<T> added_repeats(const Variable<T>& y, const Repeats& how) {
  Variable<T> x = detail::empty<T>(how.from);
  detail::reduce_axes(kernels::sum_middle<T>, y, how.parts, how.once, detail::data(x));
  return record<T>(ops::repeat_grad, std::move(x), Inputs(y), Attributes(how.repeats), Saved(),
                   [how](Variable<T> dx, Needs) -> Grads<T, 1> { return {repeated(dx, how)}; });
}

/// Where the elements of a padded axis come from in one of length n. A negative side is cut off, before a
/// circular one repeats.
Ids sources(Padding mode, std::ptrdiff_t n, std::ptrdiff_t before, std::ptrdiff_t after) {
  Ids ids = Ids::from_shape({static_cast<std::size_t>(n + before + after)});
  const std::ptrdiff_t cut = std::max<std::ptrdiff_t>(-before, 0);
  const std::ptrdiff_t rest = n - cut - std::max<std::ptrdiff_t>(-after, 0);
  for (std::size_t i = 0; i < ids.size(); ++i) {
    const std::ptrdiff_t place = static_cast<std::ptrdiff_t>(i) - before;
    ids(i) = std::clamp<std::ptrdiff_t>(place, 0, n - 1);
    if (mode == Padding::circular) ids(i) = cut + (place - cut + rest) % rest;
    if (mode == Padding::reflect) ids(i) = n - 1 - std::abs(n - 1 - std::abs(place));
  }
  return ids;
}

const char* name_of(Padding mode) {
  switch (mode) {
    case Padding::constant:
      return "constant";
    case Padding::reflect:
      return "reflect";
    case Padding::replicate:
      return "replicate";
    case Padding::circular:
      return "circular";
  }
  __builtin_unreachable();
}

}  // namespace

template <class T>
Variable<T> flip(const Variable<T>& x, const Dims& dims) {
  Strides strides = detail::row_major_strides(x.shape());
  Shape axes;
  std::ptrdiff_t first = 0;
  for (const std::ptrdiff_t dim : dims) {
    if (x.dimension() == 0 && (dim == 0 || dim == -1)) continue;
    const std::size_t axis = detail::normalize_axis("flip", dim, x.shape());
    if (std::find(axes.begin(), axes.end(), axis) != axes.end()) {
      detail::fail<ValueError>("flip: dims must name an axis once, got ", to_string(dims), " for x ",
                               x.shape());
    }
    axes.push_back(axis);
    first += (static_cast<std::ptrdiff_t>(x.shape()[axis]) - 1) * strides[axis];
    strides[axis] = -strides[axis];
  }
  Variable<T> y = detail::empty<T>(x.shape());
  if (y.size() > 0) kernels::permute<T>(x.shape(), {detail::data(x) + first, strides}, detail::data(y));
  return record<T>(ops::flip, std::move(y), Inputs(x), Attributes(axes), Saved(),
                   [dims](Variable<T> dy, Needs) -> Grads<T, 1> { return {flip(dy, dims)}; });
}

template <class T>
Variable<T> roll(const Variable<T>& x, Int shift) {
  return reshape(rolled(reshape(x, {-1}), {.length = x.size()}, shift), x.shape());
}

template <class T>
Variable<T> roll(const Variable<T>& x, const Dims& shifts, const Dims& dims) {
  if (shifts.size() != dims.size() || dims.size() == 0) {
    detail::fail<ValueError>("roll: there must be a shift for each axis, got shifts ", to_string(shifts),
                             " and dims ", to_string(dims));
  }
  if (x.dimension() == 0) detail::fail<IndexError>("roll: a scalar has no axes, got dims ", to_string(dims));
  Variable<T> y = x;
  for (std::size_t k = 0; k < dims.size(); ++k)
    y = rolled(y, detail::middle_axis("roll", dims[k], x.shape()), shifts[k]);
  return y;
}

template <class T>
Variable<T> repeat(const Variable<T>& x, const Dims& repeats) {
  const std::size_t rank = x.dimension();
  if (repeats.size() < rank || std::any_of(repeats.begin(), repeats.end(), [](auto n) { return n < 0; })) {
    detail::fail<ShapeError>("repeat: repeats must be at least 0, and at least one for each axis, got ",
                             to_string(repeats), " for x ", x.shape());
  }
  const Strides strides = detail::row_major_strides(x.shape());
  Repeats how{repeats, x.shape(), {}, {}};
  const std::size_t added = repeats.size() - rank;
  for (std::size_t k = 0; k < repeats.size(); ++k) {
    const auto count = static_cast<std::size_t>(repeats[k]);
    const std::size_t length = k < added ? 1 : x.shape()[k - added];
    how.parts.insert(how.parts.end(), {count, length});
    how.once.insert(how.once.end(), {1, length});
    how.steps.insert(how.steps.end(), {0, k < added ? 0 : strides[k - added]});
  }
  detail::check_count("repeat", how.parts);
  for (std::size_t k = 0; k < how.parts.size(); k += 2) how.to.push_back(how.parts[k] * how.parts[k + 1]);
  return repeated(x, how);
}

template <class T>
Variable<T> pad(const Variable<T>& x, const Dims& pad, Padding mode, std::type_identity_t<T> value) {
  const Border border = border_of(pad, x.shape());
  const Shape shape = padded_shape(border, pad, x.shape());
  if (mode == Padding::constant) return bordered(x, border, shape, value);
  Variable<T> y = x;
  for (std::size_t axis = 0; axis < shape.size(); ++axis) {
    const std::ptrdiff_t before = border.before[axis], after = border.after[axis];
    if (before == 0 && after == 0) continue;
    const auto n = static_cast<std::ptrdiff_t>(x.shape()[axis]), most = std::max(before, after);
    const std::ptrdiff_t rest = n + std::min<std::ptrdiff_t>(before, 0) + std::min<std::ptrdiff_t>(after, 0);
    if (n == 0 || (mode == Padding::reflect && most >= n) || (mode == Padding::circular && most > rest)) {
      detail::fail<ValueError>("pad: axis ", axis, " is too short for mode ", name_of(mode), ", got x ",
                               x.shape(), " and pad ", to_string(pad));
    }
    y = index_select(y, static_cast<int>(axis), sources(mode, n, before, after));
  }
  return y;
}

#define XGRAD_INSTANTIATE(T)                                               \
  template Variable<T> flip(const Variable<T>&, const Dims&);              \
  template Variable<T> roll(const Variable<T>&, Int);                      \
  template Variable<T> roll(const Variable<T>&, const Dims&, const Dims&); \
  template Variable<T> repeat(const Variable<T>&, const Dims&);            \
  template Variable<T> pad(const Variable<T>&, const Dims&, Padding, T);

XGRAD_INSTANTIATE(float)
XGRAD_INSTANTIATE(double)

}  // namespace xgrad
