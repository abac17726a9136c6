#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "../base/detail/by_name.hpp"

namespace xgrad::tokenizers {

struct WordPieceTrainerOptions {
  xgrad::detail::ByName by_name = {};
  /// Target size. The special tokens and the alphabet are always included, even if they exceed it.
  std::size_t vocab_size = 30000;
  std::uint64_t min_frequency = 2;    ///< minimum count of a pair of adjacent pieces to be merged
  std::size_t limit_alphabet = 1000;  ///< maximum number of characters; the most frequent are kept
  bool lowercase = true;              ///< and remove accents, as in uncased models
  std::vector<std::string> special_tokens = {"[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"};
};

/// Trains a WordPiece vocabulary on texts as Hugging Face's BertWordPieceTokenizer does: the special tokens,
/// the characters, the characters that continue a word ("##a"), and then repeatedly the merge of the most
/// frequent pair of adjacent pieces in a word (Sennrich, Haddow and Birch 2016, arXiv:1508.07909). Texts are
/// normalised and split into words as by Tokenizer. Characters beyond the limit are removed from words.
///
/// Of equally frequent characters, those of smaller code points are kept; of equally frequent pairs, the one
/// of smaller ids is first; characters are in the order of their code points, so that the same words give the
/// same vocabulary. https://github.com/huggingface/tokenizers (tokenizers/src/models/bpe/trainer.rs)
///
/// Throws ValueError for a text that is not UTF-8, and for texts without words.
std::vector<std::string> train_word_piece(std::span<const std::string> texts,
                                          const WordPieceTrainerOptions& options = {});

}  // namespace xgrad::tokenizers
