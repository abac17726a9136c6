#pragma once

#include <nlohmann/json.hpp>

#include "../../base/array.hpp"

// Not installed: what a report tells of an array in a few numbers.

namespace xgrad::detail {

/// The least, greatest and mean element and the root of the mean square, of the finite elements, and how many
/// are not finite.
template <class T>
nlohmann::json statistics_json(const Array<T>& array);

/// The same with the norm, and counts in equal bins from the least to the greatest element.
template <class T>
nlohmann::json histogram_json(const Array<T>& array);

}  // namespace xgrad::detail
