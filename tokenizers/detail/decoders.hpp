#pragma once

#include <cstdint>
#include <span>
#include <string>

#include "files/pipeline.hpp"

// Not installed.

namespace xgrad::tokenizers::detail {

/// The text of tokens, which are indices, by the decoder of the pipeline.
std::string decoded(const Pipeline& pipeline, std::span<const std::uint32_t> tokens);

}  // namespace xgrad::tokenizers::detail
