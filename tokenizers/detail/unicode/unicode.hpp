#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>

#include "../../../base/detail/text/utf8.hpp"

// Not installed: character properties of Hugging Face's library, which mixes versions of Unicode.

namespace xgrad::tokenizers::detail::unicode {

using namespace xgrad::detail::utf8;

struct Properties {
  std::uint16_t flags;
  std::uint8_t combining_class;  // canonical
  std::int32_t to_lower;         // from the character to its lower case, or to the first character of it
};

/// Two characters that NFC composes.
struct Composition {
  char32_t first, second, composed;
};

#include "unicode_table.inc"

/// The second character of the lower case of U+0130, the only one that has two.
inline constexpr char32_t dotted_capital_i = 0x130, dot_above = 0x307;

constexpr const Properties& properties_of(char32_t character) {
  const std::size_t block = blocks[character >> block_bits];
  return properties[rows[(block << block_bits) + (character & ((1U << block_bits) - 1))]];
}

/// Whether the character has one of the flags.
constexpr bool is(char32_t character, std::uint16_t flags) {
  return (properties_of(character).flags & flags) != 0;
}

/// The full canonical decomposition of a character that has the flag `decomposes`.
std::span<const char32_t> decomposition(char32_t character);

/// The full compatibility decomposition where it is not the canonical one, else empty.
std::span<const char32_t> compatibility(char32_t character);

/// The character that two are composed to, or 0.
char32_t composed(char32_t first, char32_t second);

/// Hangul's syllables, which have a rule instead of a table:
/// https://www.unicode.org/versions/latest/ (section 3.12)
namespace hangul {

inline constexpr char32_t first_syllable = 0xAC00, lead_base = 0x1100, vowel_base = 0x1161,
                          trail_base = 0x11A7;
inline constexpr char32_t lead_count = 19, vowel_count = 21, trail_count = 28;
inline constexpr char32_t syllables = lead_count * vowel_count * trail_count;

}  // namespace hangul

/// Calls put(part, leads) for each character of the full canonical decomposition; the first leads.
template <class F>
void decompose(char32_t character, F&& put) {
  using namespace hangul;
  if (const char32_t syllable = character - first_syllable; syllable < syllables) {
    put(lead_base + syllable / (vowel_count * trail_count), true);
    put(vowel_base + syllable / trail_count % vowel_count, false);
    if (syllable % trail_count != 0) put(trail_base + syllable % trail_count, false);
  } else if (is(character, decomposes)) {
    bool leads = true;
    for (const char32_t part : decomposition(character)) {
      put(part, leads);
      leads = false;
    }
  } else {
    put(character, true);
  }
}

/// Strips trailing white space of a text that must be UTF-8.
inline std::string_view without_spaces_at_the_end(std::string_view text) {
  while (!text.empty() && is(last_of(text), space)) text = text.substr(0, last_start(text));
  return text;
}

}  // namespace xgrad::tokenizers::detail::unicode
