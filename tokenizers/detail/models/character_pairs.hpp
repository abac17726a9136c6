#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "../splits/splitter.hpp"
#include "character_joins.hpp"
#include "merges.hpp"
#include "pieces.hpp"
#include "token_table.hpp"
#include "word_cache.hpp"

// Not installed.

namespace xgrad::tokenizers::detail {

/// Byte pair encoding of characters, as Hugging Face's library reads SentencePiece's models of Llama 2, Gemma
/// and NLLB: https://github.com/huggingface/tokenizers/blob/main/tokenizers/src/models/bpe/model.rs
class CharacterPairs {
 public:
  struct Options {
    Splitter splitter;
    std::optional<std::uint32_t> unknown;  // stands for characters that are no tokens; without one they go
    bool fuse_unknown = false;             // one for each run of them
    bool byte_fallback = false;            // the tokens of their bytes, where all are there
    bool ignore_merges = false;            // a word that is a token is not divided
  };

  /// Throws FileError, which begins with `where`, unless the tokens include the parts and results of all
  /// merges, and for merges of tokens that stand for unknown characters.
  CharacterPairs(const TokenTable& tokens, const MergeTexts& merges, Options options,
                 const std::string& where);

  /// Returns Pieces::end_word() of the last word.
  bool operator()(const Passage& passage, Pieces& pieces) const;

 private:
  class Word;

  std::uint32_t token_of(char32_t character) const;

  Options options_;
  std::uint64_t owner_ = WordCache::new_owner();
  std::vector<std::uint32_t> first_characters_;  // tokens of those below 128, or no_token
  std::unordered_map<char32_t, std::uint32_t> characters_;
  CharacterJoins joins_;  // of merges
  Merges merges_;
  ByteTokens bytes_;
  TokenIndices words_;  // with ignore_merges
};

}  // namespace xgrad::tokenizers::detail
