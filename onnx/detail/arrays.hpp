#pragma once

#include <algorithm>
#include <cstddef>
#include <span>
#include <vector>

#include "../../base/error.hpp"
#include "../../kernels/index/axes.hpp"
#include "../../ops/pointwise/broadcast.hpp"
#include "../../ops/reduce/detail/middle_axis.hpp"

// Arrays of integers and conditions, for shapes and masks in graphs; ops support floats only.
namespace xgrad::onnx::detail {

/// Calls f(i, place) for each element of `shape`, in order, with its offset by other strides.
template <class F>
void for_each_place(const Shape& shape, const xgrad::detail::Strides& strides, F f) {
  kernels::for_each_outer(kernels::merge_axes<1>(shape, {strides}, 0), 0,
                          [&](const auto& offset, std::size_t i) { f(i, offset[0]); });
}

/// x broadcast to a shape.
template <class E>
Array<E> stretched(const Array<E>& x, const Shape& shape) {
  if (same_shape(x.shape(), shape)) return x;
  Array<E> y = Array<E>::from_shape(shape);
  for_each_place(shape, xgrad::detail::broadcast_strides(x.shape(), shape),
                 [&](std::size_t i, std::ptrdiff_t from) { y.data()[i] = x.data()[from]; });
  return y;
}

/// Reduces the elements along these axes, which keep length 1, by f, starting with `start`.
template <class F>
Ids reduced(const Ids& x, const std::vector<std::size_t>& axes, std::int64_t start, F f) {
  Shape shape = x.shape();
  for (const std::size_t axis : axes) shape[axis] = 1;
  Ids y(shape, start);
  for_each_place(x.shape(), xgrad::detail::broadcast_strides(shape, x.shape()),
                 [&](std::size_t i, std::ptrdiff_t to) { y.data()[to] = f(y.data()[to], x.data()[i]); });
  return y;
}

/// Applies f to the elements of a and b, which broadcast.
template <class R, class E, class F>
Array<R> zipped(const Array<E>& a, const Array<E>& b, F f) {
  const Shape shape = xgrad::detail::broadcast_shape("operands", a.shape(), b.shape());
  const Array<E> left = stretched(a, shape), right = stretched(b, shape);
  Array<R> y = Array<R>::from_shape(shape);
  std::transform(left.data(), left.data() + left.size(), right.data(), y.data(), f);
  return y;
}

template <class R, class E, class F>
Array<R> mapped(const Array<E>& x, F f) {
  Array<R> y = Array<R>::from_shape(x.shape());
  std::transform(x.data(), x.data() + x.size(), y.data(), f);
  return y;
}

/// The elements of x at these indices along an axis.
template <class E>
Array<E> taken(const Array<E>& x, std::size_t axis, std::span<const std::size_t> places) {
  Shape shape = x.shape();
  shape[axis] = places.size();
  Array<E> y = Array<E>::from_shape(shape);
  const xgrad::detail::MiddleAxis m = xgrad::detail::middle_axis(axis, x.shape());
  E* to = y.data();
  for (std::size_t o = 0; o < m.outer; ++o) {
    for (const std::size_t place : places)
      to = std::copy_n(x.data() + (o * m.length + place) * m.inner, m.inner, to);
  }
  return y;
}

/// Joins arrays along an axis.
template <class E>
Array<E> joined(const std::vector<Array<E>>& parts, std::size_t axis) {
  Shape shape = parts.front().shape();
  shape[axis] = 0;
  for (const Array<E>& part : parts) {
    Shape expected = part.shape();
    if (expected.size() == shape.size()) expected[axis] = shape[axis];
    if (!same_shape(expected, shape))
      xgrad::detail::fail<ShapeError>("parts must agree except in axis ", axis, ", got ",
                                      parts.front().shape(), " and ", part.shape());
    shape[axis] += part.shape()[axis];
  }
  Array<E> y = Array<E>::from_shape(shape);
  const std::size_t outer = xgrad::detail::middle_axis(axis, shape).outer;
  E* to = y.data();
  for (std::size_t o = 0; o < outer; ++o) {
    for (const Array<E>& part : parts) {
      const std::size_t size = outer == 0 ? 0 : part.size() / outer;
      to = std::copy_n(part.data() + o * size, size, to);
    }
  }
  return y;
}

}  // namespace xgrad::onnx::detail
