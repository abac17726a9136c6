#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

#include "../splits/splitter.hpp"
#include "best_path.hpp"
#include "pieces.hpp"
#include "token_table.hpp"

// Not installed.

namespace xgrad::tokenizers::detail {

/// The most likely segmentation into tokens, by their log probabilities (T. Kudo 2018, arXiv:1804.10959):
/// https://github.com/huggingface/tokenizers/blob/main/tokenizers/src/models/unigram/model.rs
class Unigram {
 public:
  /// The score of each token by its id; what no token covers is the token `unknown`, runs of it one, or with
  /// `byte_fallback` the tokens of its bytes.
  Unigram(const TokenTable& tokens, const std::vector<double>& scores, std::uint32_t unknown,
          bool byte_fallback, Splitter splitter);

  /// Returns Pieces::end_word() of the last word.
  bool operator()(const Passage& passage, Pieces& pieces) const;

 private:
  void segment(const Passage& word, BestPath::Work& work, Pieces& pieces) const;
  void add_unknown(const Passage& word, std::size_t begin, std::size_t end, Pieces& pieces) const;

  BestPath best_path_;
  std::optional<ByteTokens> bytes_;  // with byte_fallback
  Splitter splitter_;
};

}  // namespace xgrad::tokenizers::detail
