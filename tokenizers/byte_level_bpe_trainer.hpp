#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "../base/detail/by_name.hpp"

namespace xgrad::tokenizers {

struct ByteLevelBpeTrainerOptions {
  xgrad::detail::ByName by_name = {};
  /// Target size. The special tokens and the 256 bytes are always included, even if they exceed it.
  std::size_t vocab_size = 30000;
  std::uint64_t min_frequency = 2;               ///< minimum count of a pair of adjacent pieces to be merged
  bool add_prefix_space = false;                 ///< a blank before each text that does not begin with one
  std::vector<std::string> special_tokens = {};  ///< such as "<|endoftext|>"; they come first
};

/// A vocabulary of byte-level byte pair encoding. Its tokens show bytes as GPT-2's characters do: "\u0120the"
/// has a blank before it.
struct ByteLevelBpe {
  std::vector<std::string> vocabulary;                      ///< the tokens; ids are indices
  std::vector<std::pair<std::string, std::string>> merges;  ///< the first is made first
};

/// Trains byte-level byte pair encoding on texts as Hugging Face's ByteLevelBPETokenizer does: the special
/// tokens, the bytes in the order of the characters that show them, and then repeatedly the merge of the most
/// frequent pair of adjacent pieces in a word (A. Radford et al. 2019, "Language models are unsupervised
/// multitask learners"; R. Sennrich, B. Haddow and A. Birch 2016, arXiv:1508.07909). Texts are split into
/// words by GPT-2's pattern. Of equally frequent pairs, the one of smaller ids is first. The merges are those
/// of Hugging Face's Rust library `tokenizers` 0.23.3. https://github.com/huggingface/tokenizers
/// (tokenizers/src/models/bpe/trainer.rs)
///
/// Throws ValueError for a text that is not UTF-8, and for texts without words.
ByteLevelBpe train_byte_level_bpe(std::span<const std::string> texts,
                                  const ByteLevelBpeTrainerOptions& options = {});

}  // namespace xgrad::tokenizers
