#include "utf8.hpp"

#include <stdexcept>
#include <utility>

namespace apps {

std::optional<CodePoint> first_code_point(std::string_view text) {
  const auto byte = [&](std::size_t i) { return static_cast<unsigned char>(text[i]); };
  const unsigned lead = byte(0);
  if (lead < 0x80) return CodePoint{lead, 1};

  const std::size_t bytes = lead < 0xC0 ? 0 : lead < 0xE0 ? 2 : lead < 0xF0 ? 3 : lead < 0xF8 ? 4 : 0;
  if (bytes == 0 || bytes > text.size()) return std::nullopt;
  char32_t value = lead & (0x7Fu >> bytes);
  for (std::size_t i = 1; i < bytes; ++i) {
    if ((byte(i) & 0xC0) != 0x80) return std::nullopt;
    value = (value << 6) | (byte(i) & 0x3Fu);
  }
  constexpr char32_t smallest[] = {0, 0, 0x80, 0x800, 0x10000};
  const bool surrogate = value >= 0xD800 && value <= 0xDFFF;
  if (value < smallest[bytes] || value > 0x10FFFF || surrogate) return std::nullopt;
  return CodePoint{value, bytes};
}

std::optional<std::u32string> decode_utf8(std::string_view text) {
  std::u32string points;
  while (!text.empty()) {
    const auto point = first_code_point(text);
    if (!point) return std::nullopt;
    points.push_back(point->value);
    text.remove_prefix(point->bytes);
  }
  return points;
}

std::string encode_utf8(char32_t point) {
  const auto rest = [&](int shift) { return static_cast<char>(0x80 | (point >> shift & 0x3F)); };
  if (point < 0x80) return {static_cast<char>(point)};
  if (point < 0x800) return {static_cast<char>(0xC0 | point >> 6), rest(0)};
  if (point < 0x10000) return {static_cast<char>(0xE0 | point >> 12), rest(6), rest(0)};
  return {static_cast<char>(0xF0 | point >> 18), rest(12), rest(6), rest(0)};
}

bool is_control(char32_t point) { return point < 0x20 || (point >= 0x7F && point < 0xA0); }

std::string printable(std::string_view text) {
  constexpr char hex[] = "0123456789ABCDEF";
  std::string out = "\"";
  for (int shown = 0; !text.empty(); ++shown) {
    if (shown == 40) return out + "...\"";
    const auto point = first_code_point(text);
    const std::size_t bytes = point ? point->bytes : 1;
    if (point && !is_control(point->value)) {
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
