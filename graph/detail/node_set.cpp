#include "node_set.hpp"

namespace xgrad::detail {
namespace {

template <class T>
constinit thread_local NodeSet<T>* newest = nullptr;

}  // namespace

template <class T>
NodeSet<T>::NodeSet() : outer_(newest<T>) {
  nodes_.reserve(32);
  newest<T> = this;
}

template <class T>
NodeSet<T>::~NodeSet() {
  for (const auto& [node, number] : in_outer_) node->number = number;
  newest<T> = outer_;
}

template <class T>
std::pair<std::size_t, bool> NodeSet<T>::insert(const Ref<Node<T>>& node) {
  if (const std::size_t known = find(*node); known != none) return {known, false};
  for (const NodeSet* outer = outer_; outer != nullptr; outer = outer->outer_) {
    if (outer->find(*node) == none) continue;
    in_outer_.emplace_back(node, node->number);
    break;
  }
  node->number = nodes_.size();
  nodes_.push_back(node.get());
  return {node->number, true};
}

template class NodeSet<float>;
template class NodeSet<double>;

}  // namespace xgrad::detail
