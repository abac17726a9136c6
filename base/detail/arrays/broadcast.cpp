#include "broadcast.hpp"

#include <algorithm>

#include "../../error.hpp"

namespace xgrad::detail {

std::optional<Shape> common_shape(const Shape& a, const Shape& b) {
  const Shape& longer = a.size() >= b.size() ? a : b;
  const Shape& shorter = a.size() >= b.size() ? b : a;
  Shape shape = longer;
  const std::size_t shift = longer.size() - shorter.size();
  for (std::size_t axis = 0; axis < shorter.size(); ++axis) {
    std::size_t& length = shape[shift + axis];
    if (length == 1) {
      length = shorter[axis];
    } else if (shorter[axis] != 1 && shorter[axis] != length) {
      return std::nullopt;
    }
  }
  return shape;
}

Shape broadcast_shape(const char* op, const Shape& a, const Shape& b, const char* a_name,
                      const char* b_name) {
  std::optional<Shape> shape = common_shape(a, b);
  if (!shape) fail<ShapeError>(op, ": shapes must broadcast, got ", a_name, " ", a, " and ", b_name, " ", b);
  return *std::move(shape);
}

bool stretches_to(const Shape& from, const Shape& to) {
  if (from.size() > to.size()) return false;
  const std::size_t shift = to.size() - from.size();
  for (std::size_t axis = 0; axis < from.size(); ++axis) {
    if (from[axis] != 1 && from[axis] != to[shift + axis]) return false;
  }
  return true;
}

std::size_t times_repeated(const Shape& from, const Shape& to) {
  if (from.size() > to.size()) return 0;
  std::size_t first = 0;  // of the axes that are not stretched
  while (first < from.size() && from[first] == 1) ++first;
  const std::size_t stretched = to.size() - (from.size() - first);
  if (!std::equal(from.begin() + first, from.end(), to.begin() + stretched)) return 0;
  std::size_t times = 1;
  for (std::size_t axis = 0; axis < stretched; ++axis) times *= to[axis];
  return times;
}

Strides row_major_strides(const Shape& shape) {
  Strides strides(shape.size(), 0);
  std::ptrdiff_t stride = 1;
  for (std::size_t axis = shape.size(); axis-- > 0;) {
    strides[axis] = stride;
    stride *= static_cast<std::ptrdiff_t>(shape[axis]);
  }
  return strides;
}

Strides broadcast_strides(const Shape& shape, const Shape& target) {
  const Strides own = row_major_strides(shape);
  Strides strides(target.size(), 0);
  const std::size_t shift = target.size() - shape.size();
  for (std::size_t axis = 0; axis < shape.size(); ++axis)
    strides[shift + axis] = shape[axis] == 1 ? 0 : own[axis];
  return strides;
}

}  // namespace xgrad::detail
