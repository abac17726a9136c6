#include "row_major.hpp"

#include <algorithm>

namespace xgrad::detail {

std::vector<std::byte> row_major(std::span<const std::byte> data, const Shape& shape,
                                 const std::vector<std::size_t>& strides, std::size_t element_size) {
  std::vector<std::size_t> index(shape.size());
  std::vector<std::byte> ordered(element_count(shape) * element_size);
  std::size_t source = 0;
  for (auto to = ordered.begin(); to != ordered.end();) {
    const std::span<const std::byte> element = data.subspan(source, element_size);
    to = std::copy(element.begin(), element.end(), to);
    for (std::size_t axis = shape.size(); axis-- > 0;) {
      source += strides[axis];
      if (++index[axis] < shape[axis]) break;
      source -= strides[axis] * shape[axis];
      index[axis] = 0;
    }
  }
  return ordered;
}

}  // namespace xgrad::detail
