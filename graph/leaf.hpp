#pragma once

#include "variable.hpp"

namespace xgrad::detail {

/// A variable that the user made: where gradients end up.
template <class T>
struct LeafNode final : Node<T> {
  explicit LeafNode(const Shape& shape) : Node<T>(nullptr, next_order(0), shape) {}

  std::span<const Ref<Node<T>>> inputs() const noexcept override { return {}; }
  void differentiate(Variable<T>&&, Needs, Variable<T>*) override {}
  void release() noexcept override {}

  Variable<T> grad;
};

}  // namespace xgrad::detail
