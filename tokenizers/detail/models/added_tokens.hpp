#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "trie.hpp"

// Not installed.

namespace xgrad::tokenizers::detail {

struct AddedToken {
  std::string text;
  std::uint32_t token = 0;   // its index
  bool single_word = false;  // only if no letter, digit, mark or underscore is adjacent
  bool lstrip = false;       // includes preceding white space
  bool rstrip = false;       // includes following white space
};

/// Extracts tokens from a text before the model processes the rest: the leftmost first, of these the longest.
/// https://github.com/huggingface/tokenizers/blob/main/tokenizers/src/tokenizer/added_vocabulary.rs
class AddedTokens {
 public:
  /// The texts must be distinct and not empty.
  explicit AddedTokens(std::vector<AddedToken> tokens);

  bool empty() const { return tokens_.empty(); }

  /// Calls on_text(begin, end) and on_token(token, begin, end) for the parts of the text in order, until
  /// on_text returns false.
  template <class OnText, class OnToken>
  bool split(std::string_view text, OnText&& on_text, OnToken&& on_token) const {
    std::size_t done = 0;
    for (std::size_t from = 0; const auto found = find(text, from);) {
      from = found->end;
      const AddedToken& token = tokens_[found->token];
      if (token.single_word && !is_single_word(text, *found)) continue;
      const Place place = stripped(text, token, *found, done);
      if (done < place.begin && !on_text(done, place.begin)) return false;
      if (place.begin < place.end) on_token(token.token, place.begin, place.end);
      done = place.end;
    }
    return done == text.size() || on_text(done, text.size());
  }

 private:
  struct Place {
    std::size_t token, begin, end;
  };

  std::optional<Place> find(std::string_view text, std::size_t from) const;
  static bool is_single_word(std::string_view text, const Place& place);
  static Place stripped(std::string_view text, const AddedToken& token, Place place, std::size_t done);

  std::vector<AddedToken> tokens_;
  Trie trie_;
  std::array<bool, 256> begins_{};           // whether a token begins with the byte
  std::optional<unsigned char> begins_all_;  // the first byte of all tokens, if they share it
};

}  // namespace xgrad::tokenizers::detail
