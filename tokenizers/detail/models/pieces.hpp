#pragma once

#include <cstddef>
#include <cstdint>
#include <limits>
#include <vector>

#include "../normalizers/normalizer.hpp"

// Not installed.

namespace xgrad::tokenizers::detail {

/// A token in a text.
struct Piece {
  std::uint32_t token;       // its index
  std::uint32_t begin, end;  // characters of the original text
  std::uint32_t word;
  bool added;  // found as an added token, not by the model
};

/// The tokens of a text, in order.
struct Pieces {
  std::vector<Piece> list;
  std::uint32_t words = 0;
  std::size_t limit = std::numeric_limits<std::size_t>::max();

  /// Adds bytes [begin, end) of the passage as the token.
  void add(const Passage& passage, std::uint32_t token, std::size_t begin, std::size_t end) {
    list.push_back({token, passage.source(begin), passage.source(end - 1) + 1, words, false});
  }

  /// Marks the end of a word. Returns whether to continue: reading stops after the word that reaches the
  /// limit.
  bool end_word() {
    ++words;
    return list.size() < limit;
  }
};

}  // namespace xgrad::tokenizers::detail
