#pragma once

#include <cstdint>
#include <memory>

#include "../../reduce/detail/middle_axis.hpp"

// Checks and sums of ids that index an axis, for gathering and scattering ops.
namespace xgrad::detail {

/// Throws IndexError, in the name of `op`, unless all ids are in [0, length).
void check_index(const char* op, const Ids& index, std::size_t length);

/// Adds the rows of x (outer, index, inner) to the rows of y (outer, length, inner) that the ids select along
/// the middle axis m of y.
template <class T>
void add_rows(const MiddleAxis& m, const Ids& index, const T* x, T* y);

/// The ids in half the memory. Throws as check_index does, and ValueError for an axis of 2^32 or more.
std::shared_ptr<const Array<std::uint32_t>> narrow_index(const char* op, const Ids& index, std::size_t axis,
                                                         std::size_t length);

}  // namespace xgrad::detail
