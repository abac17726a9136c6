#pragma once

#include "../../../graph/variable.hpp"

namespace xgrad::detail {

/// An axis of an array as the middle one of (outer, length, inner).
struct MiddleAxis {
  std::size_t axis = 0, outer = 1, length = 1, inner = 1;
};

/// The axis `dim` of x; a scalar counts as an array (1). Throws IndexError for a missing axis.
MiddleAxis middle_axis(const char* op, std::ptrdiff_t dim, const Shape& shape);

/// middle_axis() for a valid axis.
MiddleAxis middle_axis(std::size_t axis, const Shape& shape);

/// The shape with another length of the axis; a scalar stays one.
Shape with_length(Shape shape, const MiddleAxis& m, std::size_t length);

/// The shape without the axis; a scalar stays one.
Shape without_axis(Shape shape, const MiddleAxis& m);

}  // namespace xgrad::detail
