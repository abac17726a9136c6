#pragma once

#include "../variable.hpp"

namespace xgrad::detail {

/// A variable made by the user, which accumulates its gradient.
template <class T>
struct LeafNode final : Node<T> {
  explicit LeafNode(const Shape& shape) : Node<T>(nullptr, next_order(0), shape) {}

  std::span<const Ref<Node<T>>> inputs() const noexcept override { return {}; }
  void differentiate(Variable<T>*, Needs, Variable<T>*) override {}
  void release() noexcept override {}

  Variable<T> grad;
};

/// The gradient of a leaf that requires one, or undefined: v.grad() without its checks and its copy.
template <class T>
const Variable<T>& grad_of_leaf(const Variable<T>& leaf) noexcept {
  return static_cast<const LeafNode<T>&>(*Access<T>::node(leaf)).grad;
}

}  // namespace xgrad::detail
