#pragma once

#include <nlohmann/json.hpp>

#include "../../base/array.hpp"

// Not installed: summary statistics of an array.

namespace xgrad::detail {

/// Minimum, maximum, mean and root mean square of the finite elements, and the number of others.
template <class T>
nlohmann::json statistics_json(const Array<T>& array);

/// The statistics with the norm, and counts in equal bins from the minimum to the maximum.
template <class T>
nlohmann::json histogram_json(const Array<T>& array);

}  // namespace xgrad::detail
