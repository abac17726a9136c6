#pragma once

#include <cstdint>

#include "windows.hpp"

namespace xgrad::kernels {

/// ids (planes, windows' count): where in its image of x (planes, image) the largest element of each window
/// is; the first of equal ones, and the last nan. Each window has elements inside.
template <typename T>
void max_pool_ids(const T* x, std::size_t planes, const Windows& windows, std::int64_t* ids);

}  // namespace xgrad::kernels
