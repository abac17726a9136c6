#pragma once

#include <cstdint>
#include <span>

#include "normalizer.hpp"

// Not installed.

namespace xgrad::tokenizers::detail {

/// A character that is written, and how many characters of the text it is more (1, or 0) or fewer (below 0)
/// than the one that it stands for.
struct Change {
  char32_t character;
  std::int32_t change;
};

/// Writes characters with their sources:
/// https://github.com/huggingface/tokenizers/blob/main/tokenizers/src/tokenizer/normalizer.rs
void transform(const TextBuffer& from, std::span<const Change> changes, TextBuffer& to);

}  // namespace xgrad::tokenizers::detail
