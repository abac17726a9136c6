#pragma once

#include <algorithm>
#include <cstddef>
#include <utility>
#include <vector>

namespace xgrad::detail {

/// Adds up parts from left to right in a fixed order: that of a balanced binary tree over all of them. Part 0
/// is added to part 1, 2 to 3, then those sums to each other, and so on; a remainder at the right end has no
/// partner and is added last.
///
/// A range of the parts can be added up elsewhere: its sums are the largest nodes of the tree inside it;
/// pushing them in place of the parts gives the same additions.
///
/// a.add(b) must set a to a + b. If a.add(b, c, d), which sets a to (a + b) + (c + d), exists, nodes wait
/// until four neighbours can be added at once, with less memory traffic.
template <class Sum>
class TreeSum {
 public:
  /// The sum of `count` parts; count is a power of two that divides the index of the first part.
  struct Node {
    std::size_t count;
    Sum sum;
  };

  /// Starts before part `first`.
  explicit TreeSum(std::size_t first = 0) : end_(first) {}

  /// Adds the next parts.
  void push(Node node) {
    end_ += node.count;
    nodes_.push_back(std::move(node));
    while (add_last<at_once>()) {
    }
  }

  /// The sum so far, as the fewest nodes.
  std::vector<Node>& nodes() {
    std::vector<Node> pushed = std::move(nodes_);
    nodes_.clear();
    for (const Node& node : pushed) end_ -= node.count;
    for (Node& node : pushed) {
      end_ += node.count;
      nodes_.push_back(std::move(node));
      while (add_last<2>()) {
      }
    }
    return nodes_;
  }

  /// The sum of all parts; requires at least one.
  Sum& total() {
    nodes();
    for (; nodes_.size() > 1; nodes_.pop_back()) nodes_[nodes_.size() - 2].sum.add(nodes_.back().sum);
    return nodes_.front().sum;
  }

 private:
  static constexpr std::size_t at_once = requires(Sum & a, const Sum& b) { a.add(b, b, b); }
  ? 4 : 2;

  /// Merges the last N nodes if together they are a node of the tree.
  template <std::size_t N>
  bool add_last() {
    const std::size_t count = nodes_.back().count;
    if (nodes_.size() < N || end_ % (N * count) != 0) return false;
    Node* const last = &nodes_[nodes_.size() - N];
    if (std::any_of(last, last + N, [&](const Node& node) { return node.count != count; })) return false;
    if constexpr (N == 2) {
      last[0].sum.add(last[1].sum);
    } else {
      last[0].sum.add(last[1].sum, last[2].sum, last[3].sum);
    }
    last[0].count = N * count;
    nodes_.erase(nodes_.end() - (N - 1), nodes_.end());
    return true;
  }

  std::size_t end_;
  std::vector<Node> nodes_;
};

/// The number of parts of each node that TreeSum leaves of parts [first, end).
std::vector<std::size_t> tree_nodes(std::size_t first, std::size_t end);

}  // namespace xgrad::detail
