#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "pieces.hpp"
#include "token_table.hpp"

// Not installed.

namespace xgrad::tokenizers::detail {

/// GPT-2's characters for bytes, without blanks and control characters:
/// https://github.com/openai/gpt-2/blob/master/src/encoder.py
class ByteAlphabet {
 public:
  ByteAlphabet();

  char32_t character(unsigned char byte) const { return characters_[byte]; }

  /// Appends the bytes of the token, or the token itself if it contains any other character.
  void decode(std::string_view token, std::string& bytes) const;

 private:
  std::array<char32_t, 256> characters_{};
  std::array<std::int16_t, 512> bytes_{};  // of each character, -1 for none
};

/// The length in bytes of the first part of the text, which must not be empty, by GPT-2's pattern
/// 's|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+
std::size_t first_word(std::string_view text);

/// Byte-level byte pair encoding (A. Radford et al. 2019,
/// "Language models are unsupervised multitask learners"), as in
/// https://github.com/huggingface/tokenizers/blob/main/tokenizers/src/models/bpe/model.rs
class BytePairs {
 public:
  struct Options {
    bool add_prefix_space = false;  // before a passage that does not begin with a blank
    bool use_regex = true;          // split by GPT-2's pattern
  };

  /// Merges in descending priority; the last of duplicates counts. Throws FileError, which begins with
  /// `where`, unless the tokens include all bytes, and the parts and results of all merges.
  BytePairs(const TokenTable& tokens, const std::vector<std::pair<std::string, std::string>>& merges,
            const Options& options, const std::string& where);

  /// Returns Pieces::end_word() of the last word.
  bool operator()(const Passage& passage, Pieces& pieces) const;

 private:
  struct Merge {
    std::uint64_t pair = no_pair;
    std::uint32_t rank = 0, token = 0;
  };
  struct Symbol;
  struct Work;

  static constexpr std::uint64_t no_pair = ~std::uint64_t{0};

  static std::uint64_t pair_of(std::uint32_t left, std::uint32_t right) {
    return std::uint64_t{left} << 32 | right;
  }
  std::size_t slot_of(std::uint64_t pair) const;
  static std::size_t place_of(char left, char right) {
    return std::size_t{static_cast<unsigned char>(left)} << 8 | static_cast<unsigned char>(right);
  }
  const Merge* find(std::uint32_t left, std::uint32_t right) const;
  void merge(std::string_view part, Work& work) const;
  void add_word(const Passage& passage, std::size_t begin, std::size_t end, Work& work, Pieces& pieces) const;

  Options options_;
  std::uint64_t number_;  // unique number of this object
  std::array<std::uint32_t, 256> byte_tokens_{};
  std::vector<bool>
      joins_;  // whether a merge joins a token that ends with a byte and one that begins with another
  std::vector<Merge> merges_;  // a hash table, a power of two with free slots
};

}  // namespace xgrad::tokenizers::detail
