#pragma once

#include <bitset>
#include <cstddef>
#include <cstdint>
#include <unordered_set>

// Not installed.

namespace xgrad::tokenizers::detail {

/// Pairs of characters that tokens may join: between all others a text falls into parts of its own.
class CharacterJoins {
 public:
  void insert(char32_t left, char32_t right) {
    if (are_low(left, right)) {
      low_.set(place_of(left, right));
    } else {
      others_.insert(std::uint64_t{left} << 32 | right);
    }
  }

  bool contains(char32_t left, char32_t right) const {
    return are_low(left, right) ? low_.test(place_of(left, right))
                                : others_.contains(std::uint64_t{left} << 32 | right);
  }

 private:
  static constexpr char32_t low = 256;

  static bool are_low(char32_t left, char32_t right) { return (left | right) < low; }
  static std::size_t place_of(char32_t left, char32_t right) { return std::size_t{left} * low + right; }

  std::bitset<std::size_t{low} * low> low_;
  std::unordered_set<std::uint64_t> others_;
};

}  // namespace xgrad::tokenizers::detail
