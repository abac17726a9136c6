#pragma once

#include <cstddef>
#include <utility>
#include <vector>

#include "node.hpp"

namespace xgrad::detail {

/// The nodes visited by a pass, numbered from 0. Each node stores its number, which avoids hashing. The sets
/// of a thread are destroyed in reverse order, and only the newest may be used: as in nested passes.
template <class T>
class NodeSet {
 public:
  static constexpr std::size_t none = static_cast<std::size_t>(-1);

  NodeSet();
  ~NodeSet();
  NodeSet(const NodeSet&) = delete;
  NodeSet& operator=(const NodeSet&) = delete;

  /// The number of the node, and whether it was inserted now.
  std::pair<std::size_t, bool> insert(const Ref<Node<T>>& node);

  /// The number of the node, or none.
  std::size_t find(const Node<T>& node) const noexcept {
    return node.number < nodes_.size() && nodes_[node.number] == &node ? node.number : none;
  }

 private:
  std::vector<const Node<T>*, PoolAllocator<const Node<T>*>> nodes_;
  std::vector<std::pair<Ref<Node<T>>, std::size_t>> in_outer_;  // with its number there
  NodeSet* outer_;
};

}  // namespace xgrad::detail
