#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

// Not installed.

namespace xgrad::pretrained::detail {

/// A text that is made from another one, and the number of the character that each byte comes from.
struct TextBuffer {
  std::string text;
  std::vector<std::uint32_t> sources;

  void clear();
  void append(char32_t character, std::uint32_t source);
};

/// A part of a text as a model reads it.
struct Passage {
  std::string_view text;                   // UTF-8
  const std::uint32_t* sources = nullptr;  // of each byte; null if byte i comes from character first + i
  std::uint32_t first = 0;

  std::uint32_t source(std::size_t byte) const {
    return sources == nullptr ? first + static_cast<std::uint32_t>(byte) : sources[byte];
  }

  Passage part(std::size_t begin, std::size_t end) const;
};

/// A part of the original text, whose first character has the number `first`. The buffer is for what the
/// passage refers to.
Passage unchanged(std::string_view text, std::uint32_t first, TextBuffer& buffer);

/// BERT's normalisation as Hugging Face's Rust library does it:
/// https://github.com/huggingface/tokenizers/blob/main/tokenizers/src/normalizers/bert.rs
class BertNormalizer {
 public:
  struct Options {
    bool clean_text = true;            // drop control characters; all white space becomes U+0020
    bool handle_chinese_chars = true;  // blanks around them
    bool strip_accents = true;         // decompose, then drop the marks without width
    bool lowercase = true;
  };

  explicit BertNormalizer(const Options& options);

  /// The same as of unchanged().
  Passage operator()(std::string_view text, std::uint32_t first, TextBuffer& buffer) const;

  /// The normalised text.
  std::string operator()(std::string_view text) const;

 private:
  class Writer;

  Options options_;
  std::array<char, 128> ascii_{};  // what an ASCII character becomes, 0 for nothing
};

}  // namespace xgrad::pretrained::detail
