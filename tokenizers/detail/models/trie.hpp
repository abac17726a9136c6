#pragma once

#include <cstddef>
#include <cstdint>
#include <limits>
#include <string_view>
#include <utility>
#include <vector>

// Not installed.

namespace xgrad::tokenizers::detail {

/// A trie of words by bytes, which finds the longest match in one walk: a double array, whose node `n` has
/// its child for the byte `b` in the cell base(n) + b if that cell names n as its parent (J. Aoe 1989,
/// "An efficient digital search algorithm by using a double-array structure").
class Trie {
 public:
  using Node = std::uint32_t;
  static constexpr Node root = 0, no_node = std::numeric_limits<Node>::max();
  static constexpr std::uint32_t no_value = std::numeric_limits<std::uint32_t>::max();

  struct Match {
    std::uint32_t value = no_value;
    std::size_t length = 0;  // in bytes, 0 for none
  };

  /// The words must be distinct. An empty word is never found.
  explicit Trie(std::vector<std::pair<std::string_view, std::uint32_t>> words);

  /// The node that the bytes lead to from the root.
  Node walk(std::string_view bytes) const;

  /// Calls f(match) for each word at the beginning of the text, continued from node `from`, the shortest
  /// first.
  template <class F>
  void for_each_match(Node from, std::string_view text, F&& f) const {
    for (std::size_t i = 0; i < text.size(); ++i) {
      from = child(from, text[i]);
      if (from == no_node) break;
      if (cells_[from].value != no_value) f(Match{cells_[from].value, i + 1});
    }
  }

  /// The longest of these words.
  Match longest(Node from, std::string_view text) const {
    Match longest;
    for_each_match(from, text, [&](const Match& match) { longest = match; });
    return longest;
  }

 private:
  struct Cell {
    std::uint32_t base = 0;
    Node parent = no_node;
    std::uint32_t value = no_value;
  };
  struct Build;

  Node child(Node node, char byte) const {
    const Node cell = cells_[node].base + static_cast<unsigned char>(byte);
    return cells_[cell].parent == node ? cell : no_node;
  }

  std::vector<Cell> cells_;
};

}  // namespace xgrad::tokenizers::detail
