#include "byte_alphabet.hpp"

namespace xgrad::tokenizers::detail {
namespace {

enum class LetterKind : std::uint8_t { other, space, letter, number };

constexpr LetterKind letter_kind_of(char32_t character) {
  const std::uint16_t flags = unicode::properties_of(character).flags;
  return flags & unicode::letter   ? LetterKind::letter
         : flags & unicode::number ? LetterKind::number
         : flags & unicode::space  ? LetterKind::space
                                   : LetterKind::other;
}

constexpr std::array<LetterKind, 128> ascii_letter_kinds() {
  std::array<LetterKind, 128> kinds{};
  for (std::size_t i = 0; i < kinds.size(); ++i) kinds[i] = letter_kind_of(static_cast<char32_t>(i));
  return kinds;
}

constexpr std::array<LetterKind, 128> ascii = ascii_letter_kinds();

LetterKind first_kind(std::string_view text) {
  const auto byte = static_cast<unsigned char>(text.front());
  return byte < ascii.size() ? ascii[byte] : letter_kind_of(unicode::first_of(text));
}

/// The bytes of the characters of that kind which the text begins with.
std::size_t run_length(std::string_view text, LetterKind kind) {
  std::size_t i = 0;
  while (i < text.size() && first_kind(text.substr(i)) == kind) i += unicode::first_length(text.substr(i));
  return i;
}

}  // namespace

ByteAlphabet::ByteAlphabet() {
  bytes_.fill(-1);
  char32_t free = 256;
  for (std::size_t byte = 0; byte < characters_.size(); ++byte) {
    const bool shown = (byte >= 0x21 && byte <= 0x7E) || (byte >= 0xA1 && byte != 0xAD);
    characters_[byte] = shown ? static_cast<char32_t>(byte) : free++;
    bytes_[characters_[byte]] = static_cast<std::int16_t>(byte);
  }
}

bool ByteAlphabet::decode(std::string_view token, std::string& bytes) const {
  const std::size_t before = bytes.size();
  for (std::size_t i = 0; i < token.size(); i += unicode::first_length(token.substr(i))) {
    const char32_t character = unicode::first_of(token.substr(i));
    if (character >= bytes_.size() || bytes_[character] < 0) {
      bytes.resize(before);
      bytes += token;
      return false;
    }
    bytes.push_back(static_cast<char>(bytes_[character]));
  }
  return true;
}

std::size_t first_word(std::string_view text) {
  if (text.front() == '\'') {
    for (const std::string_view ending : {"'s", "'t", "'re", "'ve", "'m", "'ll", "'d"}) {
      if (text.starts_with(ending)) return ending.size();
    }
  }
  const LetterKind kind = first_kind(text);
  if (kind != LetterKind::space) return run_length(text, kind);
  if (text.front() == ' ' && text.size() > 1) {
    const LetterKind next = first_kind(text.substr(1));
    if (next != LetterKind::space) return 1 + run_length(text.substr(1), next);
  }
  // The last blank belongs to what follows, unless it is the only one.
  const std::size_t blanks = run_length(text, LetterKind::space);
  if (blanks == text.size() || blanks == unicode::first_length(text)) return blanks;
  return unicode::last_start(text.substr(0, blanks));
}

}  // namespace xgrad::tokenizers::detail
