#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "../files/json.hpp"
#include "normalizer.hpp"

// Not installed.

namespace xgrad::tokenizers::detail {

/// SentencePiece's precompiled map from characters to characters (T. Kudo and J. Richardson 2018,
/// arXiv:1808.06226), as Hugging Face's library applies it: to grapheme clusters of less than six bytes, or
/// else to their characters, of each the shortest entry that it begins with.
/// https://github.com/huggingface/spm_precompiled
class Charsmap {
 public:
  /// Of a file's bytes: the size of a double array, the array, and texts that end with a zero. Throws
  /// FileError, which begins with `where`.
  Charsmap(std::string_view bytes, const std::string& where);

  void operator()(const TextBuffer& from, TextBuffer& to) const;

  /// What stands for a beginning of a text.
  struct Entry {
    std::string_view text;
    std::size_t length;  // of the beginning, in bytes
  };

  /// The longest entry that the text begins with, which sentencepiece takes.
  std::optional<Entry> longest(std::string_view text) const;

 private:
  /// Calls f(entry) for the entries that the text begins with, the shortest first, until it returns false.
  template <class F>
  void for_each_entry(std::string_view text, F&& f) const;

  std::vector<std::uint32_t> units_;  // of the double array
  std::string texts_;
  std::array<bool, 256> begins_{};  // whether an entry may begin with the byte
};

/// The bytes of a text in base64; throws FileError for any other text.
std::string decoded_base64(const Json& text);

}  // namespace xgrad::tokenizers::detail
