#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "../splits/splitter.hpp"
#include "merges.hpp"
#include "pieces.hpp"
#include "token_table.hpp"
#include "word_cache.hpp"

// Not installed.

namespace xgrad::tokenizers::detail {

/// Byte-level byte pair encoding (A. Radford et al. 2019,
/// "Language models are unsupervised multitask learners"), as in
/// https://github.com/huggingface/tokenizers/blob/main/tokenizers/src/models/bpe/model.rs
/// As there, bytes that have no token are left out without an unknown token, and move the offsets of what
/// follows in the word.
class BytePairs {
 public:
  struct Options {
    Splitter splitter;                          // of bytes
    std::optional<std::uint32_t> unknown = {};  // stands for bytes that have no token
    bool fuse_unknown = false;                  // one for each run of them
    bool ignore_merges = false;                 // a word that is a token is not divided
  };

  /// Throws FileError, which begins with `where`, unless the tokens include bytes, and the parts and results
  /// of all merges, and for merges of an unknown token that is needed.
  BytePairs(const TokenTable& tokens, const MergeTexts& merges, Options options, const std::string& where);

  /// Whether some bytes have no token.
  bool lacks_bytes() const { return lacks_bytes_; }

  /// Returns Pieces::end_word() of the last word.
  bool operator()(const Passage& passage, Pieces& pieces) const;

 private:
  struct Work;

  static std::size_t place_of(char left, char right) {
    return std::size_t{static_cast<unsigned char>(left)} << 8 | static_cast<unsigned char>(right);
  }
  void merge(std::string_view part, Work& work) const;
  void add_word(const Passage& word, Work& work, Pieces& pieces) const;

  Options options_;
  std::uint64_t owner_ = WordCache::new_owner();
  ByteTokens byte_tokens_;
  bool lacks_bytes_;
  std::vector<bool>
      joins_;  // whether a merge joins a token that ends with a byte and one that begins with another
  Merges merges_;
  TokenIndices words_;  // with ignore_merges
};

}  // namespace xgrad::tokenizers::detail
