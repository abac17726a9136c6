#pragma once

#include "../variable.hpp"

namespace xgrad::detail {

/// A variable that the user made: where gradients end up.
template <class T>
struct LeafNode final : Node<T> {
  explicit LeafNode(const Shape& shape) : Node<T>(nullptr, next_order(0), shape) {}

  std::span<const Ref<Node<T>>> inputs() const noexcept override { return {}; }
  void differentiate(Variable<T>*, Needs, Variable<T>*) override {}
  void release() noexcept override {}

  Variable<T> grad;
};

/// The gradient of a leaf that requires one, undefined if it has none: v.grad() without its checks and its
/// copy.
template <class T>
const Variable<T>& grad_of_leaf(const Variable<T>& leaf) noexcept {
  return static_cast<const LeafNode<T>&>(*Access<T>::node(leaf)).grad;
}

}  // namespace xgrad::detail
