#include "utf8.hpp"

#include <stdexcept>
#include <utility>

#include <xgrad/base/detail/text/utf8.hpp>

namespace apps {

namespace utf8 = xgrad::detail::utf8;

std::optional<std::u32string> decode_utf8(std::string_view text) {
  if (utf8::find_invalid_utf8(text) != text.npos) return std::nullopt;
  std::u32string points;
  for (; !text.empty(); text.remove_prefix(utf8::first_length(text))) points.push_back(utf8::first_of(text));
  return points;
}

std::string encode_utf8(char32_t point) {
  std::string text;
  utf8::append(text, point);
  return text;
}

bool is_control(char32_t point) { return point < 0x20 || (point >= 0x7F && point < 0xA0); }

std::string printable(std::string_view text) {
  constexpr char hex[] = "0123456789ABCDEF";
  std::string out = "\"";
  for (int shown = 0; !text.empty(); ++shown) {
    if (shown == 40) return out + "...\"";
    const auto [valid, length] = utf8::first_step(text);
    const std::size_t bytes = valid ? length : 1;
    if (valid && !is_control(utf8::first_of(text))) {
      out += text.substr(0, bytes);
    } else {
      for (const char c : text.substr(0, bytes)) {
        const auto byte = static_cast<unsigned char>(c);
        out += {'\\', 'x', hex[byte >> 4], hex[byte & 15]};
      }
    }
    text.remove_prefix(bytes);
  }
  return out + "\"";
}

std::u32string characters(std::string_view word) {
  auto points = decode_utf8(word);
  if (!points) throw std::invalid_argument("characters: word must be valid UTF-8, got " + printable(word));
  return *std::move(points);
}

}  // namespace apps
