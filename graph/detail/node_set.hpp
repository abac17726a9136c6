#pragma once

#include <cstddef>
#include <utility>
#include <vector>

#include "node.hpp"

namespace xgrad::detail {

/// Nodes that a pass has come to, numbered from 0 on. Each notes its number itself, so that nothing is
/// hashed. Of the sets of a thread the newest goes first, and until then no other is used: as in a pass
/// within a pass.
template <class T>
class NodeSet {
 public:
  static constexpr std::size_t none = static_cast<std::size_t>(-1);

  NodeSet();
  ~NodeSet();
  NodeSet(const NodeSet&) = delete;
  NodeSet& operator=(const NodeSet&) = delete;

  /// The number of the node, and whether it was put in now.
  std::pair<std::size_t, bool> insert(const Ref<Node<T>>& node);

  /// The number of the node, or none.
  std::size_t find(const Node<T>& node) const noexcept {
    return node.number < nodes_.size() && nodes_[node.number] == &node ? node.number : none;
  }

 private:
  std::vector<const Node<T>*, PoolAllocator<const Node<T>*>> nodes_;
  std::vector<std::pair<Ref<Node<T>>, std::size_t>> in_outer_;  // with the number that it has there
  NodeSet* outer_;
};

}  // namespace xgrad::detail
