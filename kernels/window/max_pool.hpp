#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

namespace xgrad::kernels {

/// Windows along an axis of `length` elements: each begins somewhere, and has `size` elements, of which each
/// lies `step` behind the one before.
struct PoolAxis {
  struct Range {
    std::size_t begin, size;
  };

  std::size_t length = 0, step = 1;
  std::vector<Range> windows = {};
};

/// y (planes, rows' windows, cols' windows): the largest element of each window, and ids: where in its image
/// of x (planes, rows, cols) it is; the first of equal ones, and the last nan. Each window has elements.
template <typename T>
void max_pool(const T* x, std::size_t planes, const PoolAxis& rows, const PoolAxis& cols, T* y,
              std::int64_t* ids);

}  // namespace xgrad::kernels
