#pragma once

#include <algorithm>
#include <span>

#include "../../base/array.hpp"

namespace xgrad::pretrained::detail {

/// The numbers as an array with one axis.
inline Ids ids_of(std::span<const std::int64_t> numbers) {
  Ids ids = Ids::from_shape({numbers.size()});
  std::ranges::copy(numbers, ids.begin());
  return ids;
}

}  // namespace xgrad::pretrained::detail
