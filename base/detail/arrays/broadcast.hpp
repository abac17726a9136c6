#pragma once

// Broadcasting as in NumPy: shapes are aligned at their last axes, and an axis of length 1 stretches to the
// other's length.

#include <optional>

#include "../../array.hpp"

namespace xgrad::detail {

/// The broadcast shape of a and b, if they broadcast.
std::optional<Shape> common_shape(const Shape& a, const Shape& b);

/// The broadcast shape of a and b. Throws ShapeError in the name of `op` if they do not broadcast.
Shape broadcast_shape(const char* op, const Shape& a, const Shape& b, const char* a_name = "a",
                      const char* b_name = "b");

/// True if `from` broadcasts to exactly this shape.
bool stretches_to(const Shape& from, const Shape& to);

/// The number of repetitions if one shape stretches to the other along leading axes only; 0 if not, or if an
/// axis has length 0.
std::size_t times_repeated(const Shape& from, const Shape& to);

using Strides = xt::svector<std::ptrdiff_t, 4>;

/// Row-major strides of `shape`, in elements.
Strides row_major_strides(const Shape& shape);

/// Row-major strides of `shape` in elements, aligned with the axes of `target`; 0 for stretched axes.
Strides broadcast_strides(const Shape& shape, const Shape& target);

}  // namespace xgrad::detail
