#pragma once

#include <cstddef>
#include <span>
#include <string>
#include <vector>

#include "../base/detail/by_name.hpp"
#include "byte_level_bpe_trainer.hpp"

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

struct ByteLevelBpeFileOptions {
  xgrad::detail::ByName by_name = {};
  std::vector<std::string> special_tokens = {};  ///< found in texts as they are, and left out by decode()
  std::string end_token = "";  ///< one of these: begins and ends texts (bos_token, eos_token); empty for none
  bool add_prefix_space = false;  ///< as in training
  std::size_t max_length = 1024;  ///< maximum number of tokens of the model
};

/// Writes a tokenizer of byte-level byte pair encoding, such as train_byte_level_bpe() makes, into a folder,
/// which is created if missing: tokenizer.json and tokenizer_config.json, which Tokenizer and transformers
/// read.
///
/// Throws ValueError, before writing, for a vocabulary with an empty token or one twice, without one of the
/// bytes, of the special tokens or of the parts and results of merges; FileError for files that cannot be
/// written, and for other files of a tokenizer in the folder.
void write_byte_level_bpe(const std::string& folder, const ByteLevelBpe& trained,
                          const ByteLevelBpeFileOptions& options = {});

}  // namespace xgrad::tokenizers
