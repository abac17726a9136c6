#pragma once

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
/// a.add(b) has to make a + b of a.
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
    std::size_t first = end_;
    end_ += node.count;
    while (!nodes_.empty() && nodes_.back().count == node.count && first % (2 * node.count) != 0) {
      Node left = std::move(nodes_.back());
      nodes_.pop_back();
      first -= left.count;
      left.sum.add(node.sum);
      node = {2 * node.count, std::move(left.sum)};
    }
    nodes_.push_back(std::move(node));
  }

  /// What has been pushed, as few nodes.
  std::vector<Node>& nodes() { return nodes_; }

  /// The sum of all parts of the whole; there must be some.
  Sum& total() {
    for (; nodes_.size() > 1; nodes_.pop_back()) nodes_[nodes_.size() - 2].sum.add(nodes_.back().sum);
    return nodes_.front().sum;
  }

 private:
  std::size_t end_;
  std::vector<Node> nodes_;
};

/// The nodes that TreeSum leaves of parts [first, end): how many parts each has.
std::vector<std::size_t> tree_nodes(std::size_t first, std::size_t end);

}  // namespace xgrad::detail
