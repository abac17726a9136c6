#include "tensordot.hpp"

#include <algorithm>
#include <vector>

#include "../../base/detail/arrays/broadcast.hpp"
#include "../shape/rearrange.hpp"
#include "../shape/shapes.hpp"
#include "matmul.hpp"

namespace xgrad {
namespace {

/// x as a matrix: its other axes as rows and the given ones as columns, or turned round.
struct Unfolded {
  std::vector<std::ptrdiff_t> order;  // of the axes
  Shape rest;                         // of the other axes
  std::size_t rows = 1, cols = 1;
};

Unfolded unfolded(const Shape& shape, const std::vector<std::size_t>& summed, bool summed_first) {
  Unfolded x;
  for (std::size_t axis = 0; axis < shape.size(); ++axis) {
    if (std::find(summed.begin(), summed.end(), axis) != summed.end()) continue;
    x.order.push_back(static_cast<std::ptrdiff_t>(axis));
    x.rest.push_back(shape[axis]);
    x.rows *= shape[axis];
  }
  for (const std::size_t axis : summed) x.cols *= shape[axis];
  const auto at = summed_first ? x.order.begin() : x.order.end();
  x.order.insert(at, summed.begin(), summed.end());
  if (summed_first) std::swap(x.rows, x.cols);
  return x;
}

/// The axes, counted from the front. Throws for a missing one and for one that is there twice.
std::vector<std::size_t> axes_of(const Dims& dims, const Shape& shape, const char* name) {
  std::vector<std::size_t> axes;
  for (const std::ptrdiff_t dim : dims) {
    const std::size_t axis = detail::normalize_axis("tensordot", dim, shape, name);
    if (std::find(axes.begin(), axes.end(), axis) != axes.end())
      detail::fail<ValueError>("tensordot: axis ", axis, " of ", name, " is there twice");
    axes.push_back(axis);
  }
  return axes;
}

}  // namespace

template <class T>
Variable<T> outer(const Variable<T>& a, const Variable<T>& b) {
  if (a.dimension() != 1 || b.dimension() != 1)
    detail::fail<ShapeError>("outer: a and b must be vectors, got a ", a.shape(), " and b ", b.shape());
  return unsqueeze(a, 1) * b;
}

template <class T>
Variable<T> tensordot(const Variable<T>& a, const Variable<T>& b, Int dims) {
  const auto count = static_cast<std::ptrdiff_t>(dims), rank = static_cast<std::ptrdiff_t>(a.dimension());
  if (count < 0 || count > rank || count > static_cast<std::ptrdiff_t>(b.dimension())) {
    detail::fail<ValueError>("tensordot: dims must not be negative, nor more than a and b have axes, got ",
                             count, " for a ", a.shape(), " and b ", b.shape());
  }
  std::vector<std::ptrdiff_t> last, first;
  for (std::ptrdiff_t k = 0; k < count; ++k) {
    last.push_back(rank - count + k);
    first.push_back(k);
  }
  return tensordot(a, b, Dims(last.begin(), last.end()), Dims(first.begin(), first.end()));
}

template <class T>
Variable<T> tensordot(const Variable<T>& a, const Variable<T>& b, const Dims& dims_a, const Dims& dims_b) {
  if (dims_a.size() != dims_b.size()) {
    detail::fail<ValueError>("tensordot: a and b must have as many axes to sum over, got ", dims_a.size(),
                             " and ", dims_b.size());
  }
  const auto of_a = axes_of(dims_a, a.shape(), "a"), of_b = axes_of(dims_b, b.shape(), "b");
  for (std::size_t k = 0; k < of_a.size(); ++k) {
    if (a.shape()[of_a[k]] != b.shape()[of_b[k]]) {
      detail::fail<ShapeError>("tensordot: axis ", of_a[k], " of a and axis ", of_b[k],
                               " of b must have one length, got a ", a.shape(), " and b ", b.shape());
    }
  }
  const Unfolded left = unfolded(a.shape(), of_a, false), right = unfolded(b.shape(), of_b, true);
  const Variable<T> rows =
      reshape(permute(a, Dims(left.order.begin(), left.order.end())), {left.rows, left.cols});
  const Variable<T> cols =
      reshape(permute(b, Dims(right.order.begin(), right.order.end())), {right.rows, right.cols});
  Shape shape = left.rest;
  shape.insert(shape.end(), right.rest.begin(), right.rest.end());
  return reshape(matmul(rows, cols), shape);
}

template <class T>
Variable<T> cross(const Variable<T>& a, const Variable<T>& b, Int dim) {
  const Shape shape = detail::broadcast_shape("cross", a.shape(), b.shape());
  const auto axis = static_cast<std::ptrdiff_t>(detail::normalize_axis("cross", dim, shape, "a and b"));
  if (a.dimension() != b.dimension() || a.shape(axis) != 3 || b.shape(axis) != 3) {
    detail::fail<ShapeError>("cross: a and b must have as many axes and length 3 along axis ", axis,
                             ", got a ", a.shape(), " and b ", b.shape());
  }
  const auto next = [axis](const Variable<T>& x) { return roll(x, {-1}, {axis}); };
  return next(a * next(b) - next(a) * b);
}

#define XGRAD_INSTANTIATE(T)                                                                        \
  template Variable<T> outer(const Variable<T>&, const Variable<T>&);                               \
  template Variable<T> tensordot(const Variable<T>&, const Variable<T>&, Int);                      \
  template Variable<T> tensordot(const Variable<T>&, const Variable<T>&, const Dims&, const Dims&); \
  template Variable<T> cross(const Variable<T>&, const Variable<T>&, Int);

XGRAD_INSTANTIATE(float)
XGRAD_INSTANTIATE(double)

}  // namespace xgrad
