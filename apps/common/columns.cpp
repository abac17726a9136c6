#include "columns.hpp"

#include <algorithm>

namespace apps {
namespace {

/// Whether a byte is one of a character's, but not its first.
bool continues_character(char byte) { return (byte & 0xC0) == 0x80; }

}  // namespace

std::size_t width_of(std::string_view text) {
  return text.size() - static_cast<std::size_t>(std::ranges::count_if(text, continues_character));
}

std::string first_characters(std::string_view text, std::size_t count) {
  std::size_t end = 0;
  for (; end < text.size(); ++end) {
    if (!continues_character(text[end]) && count-- == 0) break;
  }
  return std::string(text.substr(0, end));
}

std::string last_characters(std::string_view text, std::size_t count) {
  std::size_t begin = text.size();
  while (begin > 0 && count > 0) count -= continues_character(text[--begin]) ? 0 : 1;
  return std::string(text.substr(begin));
}

std::string on_the_left(const std::string& text, std::size_t width) {
  return text + std::string(width - std::min(width, width_of(text)), ' ');
}

std::string on_the_right(const std::string& text, std::size_t width) {
  return std::string(width - std::min(width, width_of(text)), ' ') + text;
}

}  // namespace apps
