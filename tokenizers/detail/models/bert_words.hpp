#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string_view>

#include "../unicode/unicode.hpp"

// Not installed.

namespace xgrad::tokenizers::detail {

enum class CharacterKind : std::uint8_t { part, space, punctuation };

constexpr CharacterKind kind_of(char32_t character) {
  const std::uint16_t flags = unicode::properties_of(character).flags;
  if (flags & unicode::space) return CharacterKind::space;
  return flags & unicode::punctuation ? CharacterKind::punctuation : CharacterKind::part;
}

/// Kinds of the ASCII characters.
inline constexpr std::array<CharacterKind, 128> ascii_kinds = [] {
  std::array<CharacterKind, 128> all{};
  for (std::size_t i = 0; i < all.size(); ++i) all[i] = kind_of(static_cast<char32_t>(i));
  return all;
}();

/// BERT's words in a normalised text: separated by white space and punctuation; each punctuation character is
/// a word. Calls on_word(begin, end, characters) with the bytes [begin, end) of each until it returns false;
/// returns true if it never did.
/// https://github.com/huggingface/tokenizers/blob/main/tokenizers/src/pre_tokenizers/bert.rs
template <class OnWord>
bool for_each_bert_word(std::string_view text, OnWord&& on_word) {
  std::size_t begin = 0, characters = 0;  // of the word
  for (std::size_t i = 0; i < text.size();) {
    const auto byte = static_cast<unsigned char>(text[i]);
    const std::size_t next = i + unicode::first_length(text.substr(i));
    const CharacterKind kind =
        byte < ascii_kinds.size() ? ascii_kinds[byte] : kind_of(unicode::first_of(text.substr(i)));
    if (kind == CharacterKind::part) {
      ++characters;
    } else {
      if (begin < i && !on_word(begin, i, characters)) return false;
      if (kind == CharacterKind::punctuation && !on_word(i, next, std::size_t{1})) return false;
      begin = next;
      characters = 0;
    }
    i = next;
  }
  return begin == text.size() || on_word(begin, text.size(), characters);
}

}  // namespace xgrad::tokenizers::detail
