#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "files/pipeline.hpp"

// Not installed.

namespace xgrad::tokenizers::detail {

/// The text of tokens, which are indices, by the decoder of the pipeline.
std::string decoded(const Pipeline& pipeline, std::span<const std::uint32_t> tokens);

/// The bytes that a token adds behind others, such as these, as transformers takes them for stop strings:
/// https://github.com/huggingface/transformers/blob/main/src/transformers/generation/stopping_criteria.py
std::string bytes_behind(const Pipeline& pipeline, std::vector<std::uint32_t> tokens, std::uint32_t token);

}  // namespace xgrad::tokenizers::detail
