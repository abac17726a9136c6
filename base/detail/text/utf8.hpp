#pragma once

// Texts in UTF-8, without the properties of characters.

#include <cstddef>
#include <string>
#include <string_view>

namespace xgrad::detail::utf8 {

/// The bytes at the front of a text: a character, or the maximal invalid part.
struct Step {
  bool valid;
  std::size_t length;
};

/// The text must not be empty. Table 3-7 of https://www.unicode.org/versions/latest/ (section 3.9), RFC 3629.
Step first_step(std::string_view text);

/// The index of the first byte that is not UTF-8, or npos.
std::size_t find_invalid_utf8(std::string_view text);

/// The length of the first character in bytes; the text must be UTF-8 and not empty.
inline std::size_t first_length(std::string_view text) {
  const auto first = static_cast<unsigned char>(text.front());
  return first < 0x80 ? 1 : first < 0xE0 ? 2 : first < 0xF0 ? 3 : 4;
}

/// The first character of a text that must be UTF-8 and not empty.
inline char32_t first_of(std::string_view text) {
  const auto byte = [&](std::size_t i) { return static_cast<unsigned char>(text[i]); };
  const char32_t first = byte(0);
  if (first < 0x80) return first;
  if (first < 0xE0) return (first & 0x1F) << 6 | (byte(1) & 0x3F);
  if (first < 0xF0) return (first & 0xF) << 12 | (byte(1) & 0x3F) << 6 | (byte(2) & 0x3F);
  return (first & 7) << 18 | (byte(1) & 0x3F) << 12 | (byte(2) & 0x3F) << 6 | (byte(3) & 0x3F);
}

/// The index of the last character's first byte.
inline std::size_t last_start(std::string_view text) {
  std::size_t start = text.size() - 1;
  while ((static_cast<unsigned char>(text[start]) & 0xC0) == 0x80) --start;
  return start;
}

/// The last character of a text that must be UTF-8 and not empty.
inline char32_t last_of(std::string_view text) { return first_of(text.substr(last_start(text))); }

/// The number of characters.
std::size_t count(std::string_view text);

/// Appends the character in UTF-8.
void append(std::string& text, char32_t character);

/// The bytes as UTF-8, with each maximal invalid part replaced by one U+FFFD, as in Rust's
/// String::from_utf8_lossy and https://www.unicode.org/versions/latest/ (section 3.9).
std::string to_valid(std::string_view bytes);

}  // namespace xgrad::detail::utf8
