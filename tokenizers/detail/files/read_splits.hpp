#pragma once

#include <optional>

#include "../normalizers/text_steps.hpp"
#include "../splits/splitter.hpp"
#include "json.hpp"

// Not installed: patterns and pre-tokenizers of a tokenizer.json. All functions throw FileError.

namespace xgrad::tokenizers::detail {

/// {"type": "Metaspace", ...} in its old and its new spelling.
MetaspaceSplit read_metaspace(const Json& part);

/// {"type": "Replace", "pattern": ..., "content": ...} of a normalizer or a decoder.
Replace read_replace(const Json& part);

/// The pre_tokenizer: one, or those of a Sequence in turn.
Splitter read_splitter(const std::optional<Json>& part);

}  // namespace xgrad::tokenizers::detail
