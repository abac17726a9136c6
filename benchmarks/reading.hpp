#pragma once

// A loop that reads memory, whose speed bounds what has to read as much.

#include <algorithm>
#include <cstddef>
#include <vector>

#include <xgrad/base/array.hpp>
#include <xgrad/base/detail/system/pieces.hpp>
#include <xgrad/kernels/lanes.hpp>

namespace bench {
namespace {

XGRAD_VECTORIZED(float, sum_of, (const float* x, std::size_t n), (x, n)) {
  return xgrad::kernels::reduce_lanes<64>(
      0, n, 0.0F, [x](std::size_t i) XGRAD_INLINE_LAMBDA { return x[i]; },
      [](auto a, auto b) XGRAD_INLINE_LAMBDA { return a + b; });
}

/// Reads all of an array, on all threads.
float read(const xgrad::Array<float>& x) {
  constexpr std::size_t piece = std::size_t{1} << 16;
  const std::size_t pieces = xgrad::kernels::ceil_div(x.size(), piece);
  std::vector<float> sums(pieces);
  xgrad::kernels::parallel_for(pieces, [&](std::size_t i, std::size_t) {
    sums[i] = sum_of(x.data() + i * piece, std::min(piece, x.size() - i * piece));
  });
  return sum_of(sums.data(), sums.size());
}

}  // namespace
}  // namespace bench
