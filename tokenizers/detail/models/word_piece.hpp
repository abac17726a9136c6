#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>

#include "pieces.hpp"
#include "token_table.hpp"
#include "trie.hpp"

// Not installed.

namespace xgrad::tokenizers::detail {

/// BERT's splitting at white space and punctuation, then repeatedly the longest matching token (M. Schuster
/// and K. Nakajima 2012, "Japanese and Korean voice search"):
/// https://github.com/huggingface/tokenizers/blob/main/tokenizers/src/models/wordpiece/mod.rs
class WordPiece {
 public:
  /// Tokens with the prefix continue a word. A word of more than `most_characters` is the token `unknown`.
  WordPiece(const TokenTable& tokens, std::string_view prefix, std::uint32_t unknown,
            std::size_t most_characters);

  /// Returns Pieces::end_word() of the last word.
  bool operator()(const Passage& passage, Pieces& pieces) const;

 private:
  void match(const Passage& passage, std::size_t begin, std::size_t end, Pieces& pieces) const;

  Trie trie_;
  Trie::Node continuation_;
  std::uint32_t unknown_;
  std::size_t most_characters_;
};

}  // namespace xgrad::tokenizers::detail
