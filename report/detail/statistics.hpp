#pragma once

#include "../../base/array.hpp"
#include "../../base/detail/text/json_tree.hpp"

// Not installed: summary statistics of an array.

namespace xgrad::detail {

/// Minimum, maximum, mean and root mean square of the finite elements, and the number of others.
template <class T>
JsonTree statistics_json(const Array<T>& array);

/// The statistics with the norm, and counts in equal bins from the minimum to the maximum.
template <class T>
JsonTree histogram_json(const Array<T>& array);

}  // namespace xgrad::detail
