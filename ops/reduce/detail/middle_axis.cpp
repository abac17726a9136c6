#include "middle_axis.hpp"

namespace xgrad::detail {

MiddleAxis middle_axis(const char* op, std::ptrdiff_t dim, const Shape& shape) {
  if (shape.empty() && (dim == 0 || dim == -1)) return {};
  return middle_axis(normalize_axis(op, dim, shape), shape);
}

MiddleAxis middle_axis(std::size_t axis, const Shape& shape) {
  if (shape.empty()) return {};
  MiddleAxis middle{.axis = axis, .length = shape[axis]};
  for (std::size_t k = 0; k < axis; ++k) middle.outer *= shape[k];
  for (std::size_t k = axis + 1; k < shape.size(); ++k) middle.inner *= shape[k];
  return middle;
}

Shape with_length(Shape shape, const MiddleAxis& m, std::size_t length) {
  if (!shape.empty()) shape[m.axis] = length;
  return shape;
}

Shape without_axis(Shape shape, const MiddleAxis& m) {
  if (!shape.empty()) shape.erase(shape.begin() + static_cast<std::ptrdiff_t>(m.axis));
  return shape;
}

}  // namespace xgrad::detail
