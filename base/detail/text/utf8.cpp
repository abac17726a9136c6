#include "utf8.hpp"

#include <algorithm>
#include <cstdint>
#include <cstring>

namespace xgrad::detail::utf8 {
namespace {

/// The number of bytes at the front that are surely ASCII.
std::size_t ascii_length(std::string_view text) {
  constexpr std::uint64_t high_bits = 0x8080808080808080;
  std::size_t i = 0;
  for (std::uint64_t bytes; i + sizeof bytes <= text.size(); i += sizeof bytes) {
    std::memcpy(&bytes, text.data() + i, sizeof bytes);
    if (bytes & high_bits) break;
  }
  return i;
}

}  // namespace

Step first_step(std::string_view text) {
  const auto byte = [&](std::size_t i) { return i < text.size() ? static_cast<unsigned char>(text[i]) : 0; };
  const int first = byte(0);
  if (first < 0x80) return {true, 1};
  if (first < 0xC2 || first > 0xF4) return {false, 1};
  const int low = first == 0xE0 ? 0xA0 : first == 0xF0 ? 0x90 : 0x80;
  const int high = first == 0xED ? 0x9F : first == 0xF4 ? 0x8F : 0xBF;
  if (byte(1) < low || byte(1) > high) return {false, 1};
  const std::size_t length = first_length(text);
  for (std::size_t i = 2; i < length; ++i) {
    if (byte(i) < 0x80 || byte(i) > 0xBF) return {false, i};
  }
  return {true, length};
}

std::size_t find_invalid_utf8(std::string_view text) {
  for (std::size_t i = 0; i < text.size();) {
    i += ascii_length(text.substr(i));
    // A stretch of other characters is gone through without looking for ASCII after each.
    for (int steps = 0; i < text.size() && steps < 16; ++steps) {
      const Step step = first_step(text.substr(i));
      if (!step.valid) return i;
      i += step.length;
    }
  }
  return text.npos;
}

std::size_t count(std::string_view text) {
  return static_cast<std::size_t>(std::count_if(
      text.begin(), text.end(), [](char byte) { return (static_cast<unsigned char>(byte) & 0xC0) != 0x80; }));
}

void append(std::string& text, char32_t character) {
  const auto put = [&](char32_t byte) { text.push_back(static_cast<char>(byte)); };
  const auto put_rest = [&](int shift) { put(0x80 | (character >> shift & 0x3F)); };
  if (character < 0x80) {
    put(character);
  } else if (character < 0x800) {
    put(0xC0 | character >> 6);
    put_rest(0);
  } else if (character < 0x10000) {
    put(0xE0 | character >> 12);
    put_rest(6);
    put_rest(0);
  } else {
    put(0xF0 | character >> 18);
    put_rest(12);
    put_rest(6);
    put_rest(0);
  }
}

std::string to_valid(std::string_view bytes) {
  std::string text;
  text.reserve(bytes.size());
  while (!bytes.empty()) {
    const Step step = first_step(bytes);
    text += step.valid ? bytes.substr(0, step.length) : "\xEF\xBF\xBD";
    bytes.remove_prefix(step.length);
  }
  return text;
}

}  // namespace xgrad::detail::utf8
