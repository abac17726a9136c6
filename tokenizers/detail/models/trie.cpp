#include "trie.hpp"

#include <algorithm>

namespace xgrad::tokenizers::detail {
namespace {

constexpr std::size_t bytes = 256;
constexpr int most_tries = 32;  // of places for the children of a node, before they get new cells at the end

}  // namespace

/// The cells while children are given their places. The free ones are a list.
struct Trie::Build {
  /// Words [first, last) share their first `depth` bytes, which lead to the node.
  struct Task {
    Node node;
    std::size_t first, last, depth;
  };

  explicit Build(std::vector<Cell>& all) : cells(all) { grow(bytes); }

  void grow(std::size_t count) {
    for (std::size_t i = 0; i < count; ++i) {
      const auto cell = static_cast<Node>(cells.size());
      cells.emplace_back();
      // The first cells stay empty: a leaf has the base 0.
      next.push_back(no_node);
      previous.push_back(no_node);
      if (cell >= bytes) link(cell);
    }
  }

  void link(Node cell) {
    previous[cell] = last_free;
    (last_free == no_node ? first_free : next[last_free]) = cell;
    last_free = cell;
  }

  void unlink(Node cell) {
    (previous[cell] == no_node ? first_free : next[previous[cell]]) = next[cell];
    (next[cell] == no_node ? last_free : previous[next[cell]]) = previous[cell];
    next[cell] = no_node;
  }

  void take(Node cell, Node parent) {
    unlink(cell);
    cells[cell].parent = parent;
  }

  bool is_free(Node cell) const { return cell >= bytes && cells[cell].parent == no_node; }

  /// A base that has free cells for all the labels, which are sorted.
  std::uint32_t place(const std::vector<unsigned char>& labels) {
    Node cell = first_free;
    int tries = 0;
    for (; cell != no_node && tries < most_tries; ++tries, cell = next[cell]) {
      const std::uint32_t base = cell - labels.front();
      if (base + bytes > cells.size()) grow(bytes);
      if (std::ranges::all_of(labels, [&](unsigned char label) { return is_free(base + label); }))
        return base;
    }
    const auto base = static_cast<std::uint32_t>(cells.size());
    grow(bytes);
    // Cells into which nothing fits must not stay the first ones to be tried.
    for (; tries > 0; --tries) {
      cell = first_free;
      unlink(cell);
      link(cell);
    }
    return base;
  }

  std::vector<Cell>& cells;
  std::vector<Node> next, previous;
  Node first_free = no_node, last_free = no_node;
};

Trie::Trie(std::vector<std::pair<std::string_view, std::uint32_t>> words) {
  std::ranges::sort(words);
  Build build(cells_);
  std::vector<Build::Task> tasks{{root, 0, words.size(), 0}};
  std::vector<unsigned char> labels;
  std::vector<std::size_t> starts;
  while (!tasks.empty()) {
    auto [node, first, last, depth] = tasks.back();
    tasks.pop_back();
    if (first < last && words[first].first.size() == depth) cells_[node].value = words[first++].second;
    if (first == last) continue;
    labels.clear();
    starts.clear();
    for (std::size_t i = first; i < last; ++i) {
      const auto label = static_cast<unsigned char>(words[i].first[depth]);
      if (!labels.empty() && labels.back() == label) continue;
      labels.push_back(label);
      starts.push_back(i);
    }
    starts.push_back(last);
    const std::uint32_t base = build.place(labels);
    cells_[node].base = base;
    for (std::size_t i = 0; i < labels.size(); ++i) {
      build.take(base + labels[i], node);
      tasks.push_back({base + labels[i], starts[i], starts[i + 1], depth + 1});
    }
  }
  cells_.shrink_to_fit();
}

Trie::Node Trie::walk(std::string_view text) const {
  Node node = root;
  for (const char byte : text) {
    node = child(node, byte);
    if (node == no_node) break;
  }
  return node;
}

}  // namespace xgrad::tokenizers::detail
