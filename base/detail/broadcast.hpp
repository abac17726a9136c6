#pragma once

// Shapes that broadcast as in NumPy: aligned at their last axes, an axis of length 1 stretches to the other's
// length.

#include <optional>

#include "../array.hpp"

namespace xgrad::detail {

/// The shape that a and b broadcast to, if they do.
std::optional<Shape> common_shape(const Shape& a, const Shape& b);

/// The same, or a ShapeError in the name of `op`.
Shape broadcast_shape(const char* op, const Shape& a, const Shape& b, const char* a_name = "a",
                      const char* b_name = "b");

/// True if `from` broadcasts to this very shape.
bool stretches_to(const Shape& from, const Shape& to);

/// How often all elements of one shape are repeated where it stretches to the other along leading axes alone;
/// 0 if it does not, or an axis has no length.
std::size_t times_repeated(const Shape& from, const Shape& to);

using Strides = xt::svector<std::ptrdiff_t, 4>;

/// Row-major strides of `shape`, in elements.
Strides row_major_strides(const Shape& shape);

/// Row-major strides of `shape` in elements, aligned with the axes of `target`; 0 where it is stretched.
Strides broadcast_strides(const Shape& shape, const Shape& target);

}  // namespace xgrad::detail
