#include "diagonal.hpp"

#include <algorithm>

#include "../../graph/record.hpp"
#include "../reduce/reductions.hpp"
#include "detail/matrices.hpp"

namespace xgrad {
namespace {

/// A diagonal between two axes of an array of this shape.
struct Diagonal {
  Shape shape;
  std::size_t axis1, axis2;
  std::ptrdiff_t offset;

  std::size_t length() const {
    const auto rows = static_cast<std::ptrdiff_t>(shape[axis1]),
               cols = static_cast<std::ptrdiff_t>(shape[axis2]);
    return static_cast<std::size_t>(std::max<std::ptrdiff_t>(
        0, offset >= 0 ? std::min(rows, cols - offset) : std::min(rows + offset, cols)));
  }

  /// The other axes, then the diagonal.
  Shape result_shape() const {
    Shape result;
    for (std::size_t axis = 0; axis < shape.size(); ++axis)
      if (axis != axis1 && axis != axis2) result.push_back(shape[axis]);
    result.push_back(length());
    return result;
  }

  /// Calls f(place in the array, place in the result) for each element.
  template <class F>
  void for_each(const F& f) const {
    std::vector<std::size_t> strides(shape.size());
    std::size_t stride = 1;
    for (std::size_t axis = shape.size(); axis-- > 0; stride *= shape[axis]) strides[axis] = stride;
    const std::size_t count = length(), step = strides[axis1] + strides[axis2];
    const std::size_t first = offset >= 0 ? static_cast<std::size_t>(offset) * strides[axis2]
                                          : static_cast<std::size_t>(-offset) * strides[axis1];
    const Shape result = result_shape();
    const std::size_t lines = row_count(result);
    for (std::size_t line = 0; line < lines && count > 0; ++line) {
      std::size_t place = first, rest = line;
      for (std::size_t axis = shape.size(); axis-- > 0;) {
        if (axis == axis1 || axis == axis2) continue;
        place += rest % shape[axis] * strides[axis];
        rest /= shape[axis];
      }
      for (std::size_t i = 0; i < count; ++i) f(place + i * step, line * count + i);
    }
  }
};

template <class T>
Variable<T> embedded(StaticOp<1, 3> op, const Variable<T>& x, const Diagonal& d);

template <class T>
Variable<T> taken(StaticOp<1, 3> op, const Variable<T>& x, const Diagonal& d) {
  Variable<T> y = detail::empty<T>(d.result_shape());
  const T* from = detail::data(x);
  T* to = detail::data(y);
  d.for_each([&](std::size_t place, std::size_t result) { to[result] = from[place]; });
  return record<T>(op, std::move(y), Inputs(x), Attributes(d.offset, d.axis1, d.axis2), Saved(),
                   [d](Variable<T> dy, Needs) -> Grads<T, 1> { return {embedded(ops::diag_embed, dy, d)}; });
}

template <class T>
Variable<T> embedded(StaticOp<1, 3> op, const Variable<T>& x, const Diagonal& d) {
  Variable<T> y = detail::empty<T>(d.shape, op.info().name);
  const T* from = detail::data(x);
  T* to = detail::data(y);
  std::fill_n(to, y.size(), T{0});
  d.for_each([&](std::size_t place, std::size_t result) { to[place] = from[result]; });
  return record<T>(op, std::move(y), Inputs(x), Attributes(d.offset, d.axis1, d.axis2), Saved(),
                   [d](Variable<T> dy, Needs) -> Grads<T, 1> { return {taken(ops::diagonal, dy, d)}; });
}

void check_axes(const char* op, const Diagonal& d) {
  if (d.axis1 == d.axis2)
    detail::fail<ValueError>(op, ": dim1 and dim2 must be two axes, got ", d.axis1, " twice");
}

/// An offset that leads out of any array, without overflow.
std::ptrdiff_t bounded(Int offset, std::size_t length) {
  const auto most = static_cast<std::ptrdiff_t>(length);
  return std::clamp<std::ptrdiff_t>(offset, -most, most);
}

}  // namespace

template <class T>
Variable<T> diagonal(const Variable<T>& x, Int offset, Int dim1, Int dim2) {
  const Diagonal d{x.shape(), detail::normalize_axis("diagonal", dim1, x.shape()),
                   detail::normalize_axis("diagonal", dim2, x.shape()), offset};
  check_axes("diagonal", d);
  return taken(ops::diagonal, x,
               {d.shape, d.axis1, d.axis2, bounded(offset, std::max(d.shape[d.axis1], d.shape[d.axis2]))});
}

template <class T>
Variable<T> diag_embed(const Variable<T>& x, Int offset, Int dim1, Int dim2) {
  if (x.dimension() == 0) detail::fail<ShapeError>("diag_embed: x must have at least one axis, got ()");
  Shape shape = x.shape();
  shape.push_back(shape.back());
  const std::size_t first = detail::normalize_axis("diag_embed", dim1, shape, "the result"),
                    second = detail::normalize_axis("diag_embed", dim2, shape, "the result");
  const std::size_t away =
      offset < 0 ? std::size_t{0} - static_cast<std::size_t>(offset) : static_cast<std::size_t>(offset);
  for (std::size_t axis = 0, next = 0; axis < shape.size(); ++axis) {
    const bool is_new = axis == first || axis == second;
    shape[axis] = is_new ? x.shape().back() + away : x.shape()[next++];
  }
  const Diagonal d{shape, first, second, offset};
  check_axes("diag_embed", d);
  return embedded(ops::diag_embed, x, d);
}

template <class T>
Variable<T> diag(const Variable<T>& x, Int diagonal) {
  if (x.dimension() == 1) return diag_embed(x, diagonal);
  if (x.dimension() == 2) return xgrad::diagonal(x, diagonal);
  detail::fail<ShapeError>("diag: x must be a vector or a matrix, got ", x.shape());
}

template <class T>
Variable<T> trace(const Variable<T>& x) {
  detail::check_matrices("trace", x.shape(), "x");
  return sum(diagonal(x, 0, -2, -1), {-1});
}

#define XGRAD_INSTANTIATE(T)                                          \
  template Variable<T> diagonal(const Variable<T>&, Int, Int, Int);   \
  template Variable<T> diag_embed(const Variable<T>&, Int, Int, Int); \
  template Variable<T> diag(const Variable<T>&, Int);                 \
  template Variable<T> trace(const Variable<T>&);

XGRAD_INSTANTIATE(float)
XGRAD_INSTANTIATE(double)

}  // namespace xgrad
