#pragma once

#include <cstddef>
#include <cstdint>
#include <limits>
#include <vector>

#include "../../../base/pool.hpp"
#include "../normalizers/normalizer.hpp"

// Not installed.

namespace xgrad::tokenizers::detail {

/// A token in a text.
struct Piece {
  std::uint32_t token;       // its index
  std::uint32_t begin, end;  // characters of the original text
  std::uint32_t word;
  std::uint32_t added = 0;  // 0, or of an added token 1 + its place in Pieces::added_blanks
};

/// White space at the ends of a token.
struct Blanks {
  std::uint32_t before, after;
};

/// The tokens of a text, in order.
struct Pieces {
  std::vector<Piece, PoolAllocator<Piece>> list;
  std::vector<Blanks> added_blanks;  // as an added token was found in the text
  std::uint32_t words = 0;
  std::size_t limit = std::numeric_limits<std::size_t>::max();

  /// Adds bytes [begin, end) of the passage as the token.
  void add(const Passage& passage, std::uint32_t token, std::size_t begin, std::size_t end) {
    list.push_back({token, passage.source(begin), passage.source(end - 1) + 1, words});
  }

  /// Marks the end of a word. Returns whether to continue: reading stops after the word that reaches the
  /// limit.
  bool end_word() {
    ++words;
    return list.size() < limit;
  }
};

}  // namespace xgrad::tokenizers::detail
