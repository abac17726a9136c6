#pragma once

#include <algorithm>
#include <cstddef>
#include <utility>
#include <vector>

namespace xgrad::detail {

/// Adds up the parts of a whole, from left to right, in one fixed order: that of a balanced binary tree over
/// all of them. Part 0 is added to part 1, 2 to 3, then those sums to each other, and so on; what is left at
/// the right end has no partner and is added last.
///
/// A piece of the whole can be added up elsewhere: its sums are the largest nodes of the tree inside of it,
/// and give the same additions when they are pushed where the parts were.
///
/// a.add(b) has to make a + b of a. Where a.add(b, c, d) makes (a + b) + (c + d) of it, nodes wait until four
/// neighbours can be added up in one go, which reads and writes less memory.
template <class Sum>
class TreeSum {
 public:
  /// The sum of `count` parts; count is a power of two, and the first of the parts divisible by it.
  struct Node {
    std::size_t count;
    Sum sum;
  };

  /// Begins before part `first`.
  explicit TreeSum(std::size_t first = 0) : end_(first) {}

  /// The parts that come next.
  void push(Node node) {
    end_ += node.count;
    nodes_.push_back(std::move(node));
    while (add_last<at_once>()) {
    }
  }

  /// What has been pushed, as few nodes.
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

  /// The sum of all parts of the whole; there must be some.
  Sum& total() {
    nodes();
    for (; nodes_.size() > 1; nodes_.pop_back()) nodes_[nodes_.size() - 2].sum.add(nodes_.back().sum);
    return nodes_.front().sum;
  }

 private:
  static constexpr std::size_t at_once = requires(Sum & a, const Sum& b) { a.add(b, b, b); }
  ? 4 : 2;

  /// Makes one node of the last N if together they are one of the tree.
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

/// The nodes that TreeSum leaves of parts [first, end): how many parts each has.
std::vector<std::size_t> tree_nodes(std::size_t first, std::size_t end);

}  // namespace xgrad::detail
