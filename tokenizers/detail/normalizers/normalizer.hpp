#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <string>
#include <string_view>
#include <vector>

#include "../../../base/pool.hpp"

// Not installed.

namespace xgrad::tokenizers::detail {

/// A text derived from another one, and the index of the source character of each byte.
struct TextBuffer {
  std::string text;
  std::vector<std::uint32_t, PoolAllocator<std::uint32_t>> sources;
  std::size_t most = std::numeric_limits<std::size_t>::max();  // bytes; clear() leaves it

  void clear();
  /// Sets `most` for what is made of so many bytes; a short text may become far longer.
  void limit_growth(std::size_t size);
  /// Throws ValueError if so many bytes are more than `most`.
  void check(std::size_t size) const;
  void append(char32_t character, std::uint32_t source);
};

/// Appends the character in lower case.
void append_lower(TextBuffer& buffer, char32_t character, std::uint32_t source);

/// A part of a text, as input of a model.
struct Passage {
  std::string_view text;                   // UTF-8
  const std::uint32_t* sources = nullptr;  // of each byte; null if byte i comes from character first + i
  std::uint32_t first = 0;

  std::uint32_t source(std::size_t byte) const {
    return sources == nullptr ? first + static_cast<std::uint32_t>(byte) : sources[byte];
  }

  Passage part(std::size_t begin, std::size_t end) const;
};

/// A part of the original text, whose first character has the index `first`. The buffer is storage for the
/// passage.
Passage unchanged(std::string_view text, std::uint32_t first, TextBuffer& buffer);

/// BERT's normalisation as in Hugging Face's Rust library:
/// https://github.com/huggingface/tokenizers/blob/main/tokenizers/src/normalizers/bert.rs
class BertNormalizer {
 public:
  struct Options {
    bool clean_text = true;            // drop control characters; all white space becomes U+0020
    bool handle_chinese_chars = true;  // surround them with blanks
    bool strip_accents = true;         // decompose, then remove nonspacing marks
    bool lowercase = true;
  };

  explicit BertNormalizer(const Options& options);

  BertNormalizer lowercased() const {
    Options options = options_;
    options.lowercase = true;
    return BertNormalizer(options);
  }

  /// Normalizes a part of the original text; arguments as in unchanged().
  Passage operator()(std::string_view text, std::uint32_t first, TextBuffer& buffer) const;

  /// The normalised text.
  std::string operator()(std::string_view text) const;

 private:
  class Writer;

  Options options_;
  std::array<char, 128> ascii_{};  // replacements of ASCII characters, 0 for none
};

}  // namespace xgrad::tokenizers::detail
