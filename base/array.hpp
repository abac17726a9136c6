#pragma once

#include <concepts>
#include <cstdint>
#include <string>

#include "pool.hpp"
#include "xtensor.hpp"

namespace xgrad {

/// Element types of Variables: float for training, double for checks.
template <class T>
concept Real = std::same_as<T, float> || std::same_as<T, double>;

/// An xtensor array, row-major and contiguous; functions of xt::xarray apply to it. As in xtensor, Ids
/// ids({2, 3}) has the two values 2 and 3; zeros<std::int64_t>({2, 3}) has two rows of three.
template <class T>
using Array = xt::xarray<T, xt::layout_type::row_major, PoolAllocator<T>>;

/// The lengths of an array's axes.
using Shape = Array<float>::shape_type;
using Ids = Array<std::int64_t>;  ///< token ids, classes, indices
using Mask = Array<bool>;         ///< conditions, such as attention masks

/// "(2, 3)"; "()" for a scalar, "(3)" for one axis.
[[nodiscard]] std::string to_string(const Shape& shape);

/// a == b, without the function call of a range comparison.
inline bool same_shape(const Shape& a, const Shape& b) {
  if (a.size() != b.size()) return false;
  for (std::size_t axis = 0; axis < a.size(); ++axis) {
    if (a[axis] != b[axis]) return false;
  }
  return true;
}

/// The number of elements.
inline std::size_t element_count(const Shape& shape) {
  std::size_t count = 1;
  for (const std::size_t length : shape) count *= length;
  return count;
}

/// The number of rows: the product of all lengths except the last, 1 for a scalar.
inline std::size_t row_count(const Shape& shape) {
  std::size_t count = 1;
  for (std::size_t axis = 0; axis + 1 < shape.size(); ++axis) count *= shape[axis];
  return count;
}

}  // namespace xgrad
