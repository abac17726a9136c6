#pragma once

#include <cstddef>
#include <span>
#include <string>

namespace xgrad::pretrained {

struct WordPieceFileOptions {
  bool lowercase = true;         ///< and without accents, as in uncased models
  std::size_t max_length = 512;  ///< the most tokens of the model, with the special ones
};

/// Writes the tokenizer of a BERT model into a folder, which is made if it is not there: tokenizer.json, and
/// vocab.txt with tokenizer_config.json, which say the same. The ids are the places in the vocabulary, which
/// train_word_piece() makes.
///
/// Throws ValueError, before it writes, for a vocabulary without [PAD], [UNK], [CLS], [SEP] or [MASK], and
/// for a token that is empty, there twice, not UTF-8 or has white space in it; FileError for files that
/// cannot be written.
void write_word_piece(const std::string& folder, std::span<const std::string> vocabulary,
                      const WordPieceFileOptions& options = {});

}  // namespace xgrad::pretrained
