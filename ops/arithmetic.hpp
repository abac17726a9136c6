#pragma once

#include <optional>

#include <xgrad/graph/variable.hpp>

// add, sub, mul, div and neg are declared with Variable, whose operators + - * / they are. Two operands
// broadcast as in NumPy: shapes are aligned at their last axes, and an axis of length 1 stretches to the
// other's length. The gradient of an operand is summed over the axes along which it was stretched. An operand
// may be a number.
//   add: da = dy, db = dy              sub: da = dy, db = -dy
//   mul: da = dy b, db = dy a          div: da = dy / b, db = -dy y / b
// Errors: ShapeError "add: shapes must broadcast, got a (2, 3) and b (4)".
// https://pytorch.org/docs/stable/notes/broadcasting.html

namespace xgrad {

/// x repeated along the axes that broadcasting to `shape` adds or stretches. Its gradient is sum_to.
template <class T>
Variable<T> broadcast_to(const Variable<T>& x, const Shape& shape);

/// The reverse: x summed over the axes along which `shape` would be stretched to x's shape.
template <class T>
Variable<T> sum_to(const Variable<T>& x, const Shape& shape);

namespace detail {

/// The shape that a and b broadcast to, if they do.
std::optional<Shape> common_shape(const Shape& a, const Shape& b);

/// The same, or a ShapeError in the name of `op`.
Shape broadcast_shape(const char* op, const Shape& a, const Shape& b, const char* a_name = "a",
                      const char* b_name = "b");

using Strides = xt::svector<std::ptrdiff_t, 4>;

/// Row-major strides of `shape`, in elements.
Strides row_major_strides(const Shape& shape);

/// Row-major strides of `shape` in elements, aligned with the axes of `target`; 0 where it is stretched.
Strides broadcast_strides(const Shape& shape, const Shape& target);

}  // namespace detail
}  // namespace xgrad
