#pragma once

#include <cstddef>

#include "../tensor_view.hpp"

// Not installed: types of GGUF files whose numbers stand in blocks, as small integers times a scale.

namespace xgrad::detail {

/// Writes the floats of `count` blocks, which may have any alignment.
using BlocksToFloats = void (*)(const std::byte* blocks, std::size_t count, float* y);

/// The function for the blocks of this type; null for other types, and for blocks that are not read.
BlocksToFloats blocks_to_floats(DType dtype);

}  // namespace xgrad::detail
