#pragma once

#include <cstddef>
#include <span>
#include <vector>

#include "../../base/array.hpp"

// Not installed.

namespace xgrad::detail {

/// The elements of an array row by row; `strides` count bytes, and every element must be in `data`.
std::vector<std::byte> row_major(std::span<const std::byte> data, const Shape& shape,
                                 const std::vector<std::size_t>& strides, std::size_t element_size);

}  // namespace xgrad::detail
