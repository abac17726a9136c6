#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

namespace xgrad::pretrained {

struct WordPieceTrainerOptions {
  /// Where it ends. The special tokens and the alphabet are always in the vocabulary, even if they are more.
  std::size_t vocab_size = 30000;
  std::uint64_t min_frequency = 2;    ///< of two pieces side by side that become one
  std::size_t limit_alphabet = 1000;  ///< the most characters, which are the most frequent ones
  bool lowercase = true;              ///< and without accents, as in uncased models
  std::vector<std::string> special_tokens = {"[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"};
};

/// A WordPiece vocabulary for texts, as Hugging Face's BertWordPieceTokenizer makes it: the special tokens,
/// the characters, the characters that continue a word ("##a"), and then again and again the pieces that most
/// often stand side by side in a word, as one (Sennrich, Haddow and Birch 2016, arXiv:1508.07909). Texts are
/// normalised and split into words as Tokenizer does it. Characters beyond the limit are left out of their
/// words.
///
/// Of equally frequent characters those of smaller code points are kept, of equally frequent pairs the one of
/// smaller ids is first, and characters are in the order of their code points, so that the same words give
/// the same vocabulary. https://github.com/huggingface/tokenizers (tokenizers/src/models/bpe/trainer.rs)
///
/// Throws ValueError for a text that is not UTF-8, and for texts without any word.
std::vector<std::string> train_word_piece(std::span<const std::string> texts,
                                          const WordPieceTrainerOptions& options = {});

}  // namespace xgrad::pretrained
