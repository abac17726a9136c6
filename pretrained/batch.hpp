#pragma once

#include <span>
#include <string>
#include <vector>

#include "../tokenizers/tokenizer.hpp"
#include "input.hpp"

namespace xgrad::pretrained {

/// Texts as one input of a model: (batch, length), padded at the ends to the length of the longest.
struct Batch : Input {
  std::vector<tokenizers::Encoding> encodings;  ///< the rows
};

/// Encodes texts as one batch:
///
///     model(pretrained::encode(tokenizer, texts, {.max_length = 128}));
///
/// Throws what Tokenizer::encode() and pad() throw.
Batch encode(const tokenizers::Tokenizer& tokenizer, std::span<const std::string> texts,
             const tokenizers::EncodeOptions& options = {});

/// Encodes pairs as one batch: texts[i] with seconds[i].
Batch encode(const tokenizers::Tokenizer& tokenizer, std::span<const std::string> texts,
             std::span<const std::string> seconds, const tokenizers::EncodeOptions& options = {});

/// Pads encodings by Tokenizer::pad().
Batch pad(const tokenizers::Tokenizer& tokenizer, std::vector<tokenizers::Encoding> encodings);

}  // namespace xgrad::pretrained
