#pragma once

#include "../../base/detail/arrays/broadcast.hpp"
#include "../../graph/op.hpp"
#include "../../graph/variable.hpp"

namespace xgrad {

/// x repeated along the axes that broadcasting to `shape` adds or stretches. Its gradient is sum_to.
template <class T>
Variable<T> broadcast_to(const Variable<T>& x, const Shape& shape);

/// The reverse of broadcast_to: x summed over the axes along which `shape` would be stretched to x's shape.
/// Its gradient is broadcast_to.
template <class T>
Variable<T> sum_to(const Variable<T>& x, const Shape& shape);

namespace detail {

/// y (outer, inner) = x (outer, n, inner) reduced along its middle axis.
template <class T>
using ReduceMiddle = void (*)(const T* x, std::size_t outer, std::size_t n, std::size_t inner, T* y);

/// Reduces x, read as of `shape`, over the axes along which `kept` would be stretched to it, one run of
/// adjacent axes after the other; y has room for the result.
template <class T>
void reduce_axes(ReduceMiddle<T> reduce, const Variable<T>& x, const Shape& shape, const Shape& kept, T* y);
template <class T>
void reduce_axes(ReduceMiddle<T> reduce, const Variable<T>& x, const Shape& kept, T* y) {
  reduce_axes(reduce, x, x.shape(), kept, y);
}

/// y, of `shape`, = x stretched along the axes that `kept` lacks or where its length is 1.
template <class T>
void stretch_axes(const T* x, const Shape& kept, const Shape& shape, T* y);

/// broadcast_to and sum_to for use inside ops, without a copy: returns x itself if it has the shape.
template <class T>
Variable<T> stretched(const Variable<T>& x, const Shape& shape) {
  return same_shape(x.shape(), shape) ? x : broadcast_to(x, shape);
}
template <class T>
Variable<T> summed(const Variable<T>& x, const Shape& shape) {
  return same_shape(x.shape(), shape) ? x : sum_to(x, shape);
}

}  // namespace detail

namespace ops {

inline constexpr Op broadcast_to("broadcast_to", {"x"}, {"shape"});
inline constexpr Op sum_to("sum_to", {"x"}, {"shape"});

}  // namespace ops
}  // namespace xgrad
