#pragma once

#include <cstddef>
#include <span>
#include <string>

#include "../base/detail/by_name.hpp"

namespace xgrad::tokenizers {

struct WordPieceFileOptions {
  xgrad::detail::ByName by_name = {};
  bool lowercase = true;         ///< and remove accents, as in uncased models
  std::size_t max_length = 512;  ///< maximum number of tokens of the model, including special tokens
};

/// Writes the tokenizer of a BERT model into a folder, which is created if missing: tokenizer.json, and the
/// equivalent vocab.txt with tokenizer_config.json. Ids are indices in the vocabulary, such as
/// train_word_piece() makes.
///
/// Throws ValueError, before writing, for a vocabulary without [PAD], [UNK], [CLS], [SEP] or [MASK], and for
/// a token that is empty, a duplicate, not UTF-8 or contains white space; FileError for files that cannot be
/// written, and for other files of a tokenizer in the folder.
void write_word_piece(const std::string& folder, std::span<const std::string> vocabulary,
                      const WordPieceFileOptions& options = {});

}  // namespace xgrad::tokenizers
