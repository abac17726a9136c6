#pragma once

// The characters of UTF-8 texts, that is their code points: counted, cut off, and filled up to columns.

#include <algorithm>
#include <cstddef>
#include <string>
#include <string_view>

namespace apps {

/// Whether a byte is one of a character's, but not its first.
inline bool continues_character(char byte) { return (byte & 0xC0) == 0x80; }

/// The number of characters.
inline std::size_t width_of(std::string_view text) {
  return text.size() - static_cast<std::size_t>(std::ranges::count_if(text, continues_character));
}

/// The first or the last characters of a text; all of it if there are not so many.
inline std::string first_characters(std::string_view text, std::size_t count) {
  std::size_t end = 0;
  for (; end < text.size(); ++end) {
    if (!continues_character(text[end]) && count-- == 0) break;
  }
  return std::string(text.substr(0, end));
}
inline std::string last_characters(std::string_view text, std::size_t count) {
  std::size_t begin = text.size();
  while (begin > 0 && count > 0) count -= continues_character(text[--begin]) ? 0 : 1;
  return std::string(text.substr(begin));
}

/// The text with blanks after or before it, so that it is `width` characters wide; a longer one stays as it
/// is.
inline std::string on_the_left(const std::string& text, std::size_t width) {
  return text + std::string(width - std::min(width, width_of(text)), ' ');
}
inline std::string on_the_right(const std::string& text, std::size_t width) {
  return std::string(width - std::min(width, width_of(text)), ' ') + text;
}

}  // namespace apps
