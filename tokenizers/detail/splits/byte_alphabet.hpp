#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "../unicode/unicode.hpp"

// Not installed.

namespace xgrad::tokenizers::detail {

/// GPT-2's characters for bytes, without blanks and control characters:
/// https://github.com/openai/gpt-2/blob/master/src/encoder.py
class ByteAlphabet {
 public:
  ByteAlphabet();

  char32_t character(unsigned char byte) const { return characters_[byte]; }

  /// Appends the bytes of the token, or the token itself if it contains any other character; then returns
  /// false.
  bool decode(std::string_view token, std::string& bytes) const;

 private:
  std::array<char32_t, 256> characters_{};
  std::array<std::int16_t, 512> bytes_{};  // of each character, -1 for none
};

/// The length in bytes of the first part of the text, which must not be empty, by GPT-2's pattern
/// 's|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+
std::size_t first_word(std::string_view text);

}  // namespace xgrad::tokenizers::detail
