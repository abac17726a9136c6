#pragma once

// A pass from an output down to the leaves: backward() goes everywhere, grad() and grad_each() along a route.

#include <span>

#include "leaf.hpp"

namespace xgrad::detail {

[[noreturn, gnu::cold]] void fail_released(const char* op);

template <class T>
class Route {
 public:
  virtual ~Route() = default;

  /// Before the pass has begun.
  virtual void begin() {}

  /// The pass is at a node, whose whole gradient is dy. False if it does not go on from there.
  virtual bool arrive(const Node<T>& node, const Variable<T>& /*dy*/) {
    if (node.released) fail_released(node.op->name);
    return true;
  }

  /// Whether the gradient of this node is needed, an input of one that the pass goes on from.
  virtual bool leads_to(const Node<T>&) const { return true; }

  /// The inputs of a node have been given their gradients.
  virtual void passed(std::span<const Ref<Node<T>>> /*inputs*/) {}

  /// The pass came to these leaves, whose gradients are pending if nobody took them.
  virtual void finish(std::span<const Ref<Node<T>>> leaves) = 0;
};

/// The gradient that a pass from `output` begins with: the seed that the caller gave, or 1 for one element.
template <class T>
Variable<T> first_gradient(const char* what, const Variable<T>& output, const Variable<T>& seed,
                           bool create_graph);

/// A pass from root, whose gradient is `first`.
template <class T>
void run_along(Route<T>& route, const Ref<Node<T>>& root, Variable<T>&& first, bool retain_graph,
               bool create_graph);

template <class T>
bool has_pending(const Node<T>& node) {
  return static_cast<bool>(node.grad_value);
}

template <class T>
Variable<T> take_pending(Node<T>& node) {
  return Access<T>::make(std::move(node.grad_value), std::move(node.grad_node));
}

template <class T>
bool is_sole_owner(const Variable<T>& v) {
  return Access<T>::value(v)->refs.unique();
}

template <class T>
Variable<T> clone(const Variable<T>& gradient);

/// The same gradient with an array that nobody else has.
template <class T>
Variable<T> unshared(Variable<T>&& gradient) {
  return is_sole_owner(gradient) ? std::move(gradient) : clone(gradient);
}

}  // namespace xgrad::detail
