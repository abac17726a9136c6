#pragma once

#include <cstddef>

namespace xgrad::detail {

/// Returns `size`. Throws ValueError "Linear: in_features must be at least 1, got 0" (or for a size too large
/// for an array).
std::size_t checked_size(const char* module, const char* name, std::size_t size);

/// Returns `p`. Throws ValueError "Dropout: p must be in [0, 1], got 2".
double checked_probability(const char* module, const char* name, double p);

}  // namespace xgrad::detail
