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

namespace xgrad::pretrained::detail {

struct AddedToken {
  std::string text;
  std::uint32_t token = 0;   // its index
  bool single_word = false;  // only where no letter, digit, mark or underscore is beside it
  bool lstrip = false;       // takes the white space before it
  bool rstrip = false;       // takes the white space after it
};

/// Cuts tokens out of a text before a model sees the rest, the leftmost and of these the longest one first:
/// https://github.com/huggingface/tokenizers/blob/main/tokenizers/src/tokenizer/added_vocabulary.rs
class AddedTokens {
 public:
  /// The texts must be distinct and not empty.
  explicit AddedTokens(std::vector<AddedToken> tokens);

  bool empty() const { return tokens_.empty(); }

  /// Calls on_text(begin, end) and on_token(token, begin, end) for the parts of the text in their order,
  /// until on_text returns false.
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
  std::optional<unsigned char> begins_all_;  // the byte with which all do
};

}  // namespace xgrad::pretrained::detail
