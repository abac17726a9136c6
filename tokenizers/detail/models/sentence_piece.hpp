#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "../normalizers/charsmap.hpp"
#include "best_path.hpp"
#include "character_joins.hpp"
#include "pieces.hpp"
#include "token_table.hpp"

// Not installed.

namespace xgrad::tokenizers::detail {

inline constexpr std::string_view sentence_piece_blank = "\u2581";

/// What sentencepiece itself does with a model of its own (T. Kudo and J. Richardson 2018, arXiv:1808.06226):
/// https://github.com/google/sentencepiece (normalizer.cc, unigram_model.cc, bpe_model.cc, word_model.cc,
/// char_model.cc). Hugging Face's library differs for odd texts, where it splits and maps by other rules.
class SentencePiece {
 public:
  enum class Kind : std::uint8_t { unigram = 1, bpe = 2, word = 3, characters = 4 };
  enum class Type : std::uint8_t {
    normal = 1,
    unknown = 2,
    control = 3,
    user_defined = 4,
    unused = 5,
    byte = 6
  };

  /// Tokens of another vocabulary in place of the pieces (Marian's).
  struct Vocabulary {
    std::vector<std::uint32_t> tokens;  // of each piece
    TokenIndices texts;                 // what is unknown to the model may be a token
    std::uint32_t unknown;
  };

  struct Options {
    Kind kind = Kind::unigram;
    bool byte_fallback = false;
    bool blank_as_suffix = false;  // of words, not as prefix
    bool add_dummy_prefix = true;  // a blank before the text, or behind it
    bool remove_extra_blanks = true;
    bool shows_blanks = true;  // as U+2581
    std::optional<Charsmap> charsmap;
    std::optional<Vocabulary> vocabulary = {};
  };

  /// Types and scores of the tokens by their indices; one must be unknown, some normal.
  SentencePiece(const TokenTable& tokens, std::vector<Type> types, std::vector<float> scores,
                Options options);

  /// Returns Pieces::end_word() of the last word.
  bool operator()(const Passage& passage, Pieces& pieces) const;

 private:
  class Merging;
  class Output;

  /// The text as the model reads it, with one more source, of its end.
  TextBuffer normalized(const Passage& passage) const;
  /// The bytes of the user-defined token that the text begins with, or else of its first character.
  std::size_t first_unit(std::string_view text) const;
  std::uint32_t token_of(std::string_view text) const;
  void find_joins(const TokenTable& tokens);
  /// Whether a token may begin before this place, which is between characters, and end behind it.
  bool may_join(std::string_view text, std::size_t place) const;
  void split_words(std::string_view text, Output& output) const;

  std::vector<Type> types_;
  std::vector<float> scores_;
  Options options_;
  std::uint32_t unknown_ = no_token;
  Trie words_;  // that may be in a text
  Trie user_defined_;
  std::optional<BestPath> best_path_;
  CharacterJoins joins_;  // of kind bpe
  ByteTokens bytes_;
};

}  // namespace xgrad::tokenizers::detail
