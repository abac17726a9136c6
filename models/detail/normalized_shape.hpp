#pragma once

#include "../../base/dims.hpp"
#include "../../base/error.hpp"

namespace xgrad::detail {

/// The shape that a norm is over. Throws ValueError in the name of `module` for no lengths and for one
/// below 1.
inline Shape checked_normalized_shape(const char* module, const Dims& normalized_shape) {
  Shape shape;
  for (const std::ptrdiff_t length : normalized_shape) {
    if (length < 1)
      fail<ValueError>(module, ": lengths of normalized_shape must be at least 1, got ", length);
    shape.push_back(static_cast<std::size_t>(length));
  }
  if (shape.empty()) fail<ValueError>(module, ": normalized_shape must have a length, got ()");
  return shape;
}

}  // namespace xgrad::detail
