#pragma once

#include <span>
#include <string>
#include <vector>

#include "../tokenizers/tokenizer.hpp"
#include "config.hpp"
#include "input.hpp"

namespace xgrad::pretrained {

/// Texts as one input of a model: (batch, length).
struct [[nodiscard]] Batch : Input {
  std::vector<tokenizers::Encoding> encodings;  ///< the rows
};

/// Encodes texts as one batch:
///
///     model(pretrained::encode(tokenizer, texts, {.max_length = 128}));
///
/// Padding is behind the texts, whatever the folder's padding_side, unless `padding` names a side: in front
/// of a text, encoders count it as positions, as Hugging Face's do, and the text's numbers depend on its
/// batch. Throws what Tokenizer::encode() and pad() throw.
Batch encode(const tokenizers::Tokenizer& tokenizer, std::span<const std::string> texts,
             const tokenizers::EncodeOptions& options = {}, const tokenizers::PadOptions& padding = {});

/// Encodes pairs as one batch: texts[i] with seconds[i].
Batch encode(const tokenizers::Tokenizer& tokenizer, std::span<const std::string> texts,
             std::span<const std::string> seconds, const tokenizers::EncodeOptions& options = {},
             const tokenizers::PadOptions& padding = {});

/// Pads encodings by Tokenizer::pad(), at the end as encode() does, and makes them one batch. Throws
/// ShapeError if they still differ in length.
Batch pad(const tokenizers::Tokenizer& tokenizer, std::vector<tokenizers::Encoding> encodings,
          const tokenizers::PadOptions& padding = {});

/// Throws FileError, which names the folder, if an id of the tokenizer is not below the model's vocab_size.
void check_vocabulary(const tokenizers::Tokenizer& tokenizer, const Config& config,
                      const std::string& folder);

}  // namespace xgrad::pretrained
