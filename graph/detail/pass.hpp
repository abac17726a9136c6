#pragma once

// A pass from an output to the leaves: backward() visits all nodes, grad() and grad_each() those of a route.

#include <span>

#include "leaf.hpp"

namespace xgrad::detail {

[[noreturn, gnu::cold]] void fail_released(const char* op);
[[noreturn, gnu::cold]] void fail_unused(const char* what, const char* kind, std::size_t i,
                                         const Shape& shape);

template <class T>
class Route {
 public:
  virtual ~Route() = default;

  /// Called before the pass begins.
  virtual void begin() {}

  /// Called at a node with its complete gradient dy. Returns false to stop there.
  virtual bool arrive(const Node<T>& node, const Variable<T>& /*dy*/) {
    if (node.released) fail_released(node.op->name);
    return true;
  }

  /// Whether the pass needs the gradient of this node, an input of a visited node.
  virtual bool leads_to(const Node<T>&) const { return true; }

  /// Called after the gradients of a node's inputs were accumulated.
  virtual void passed(std::span<const Ref<Node<T>>> /*inputs*/) {}

  /// Called at the end with the visited leaves, whose gradients are pending unless taken.
  virtual void finish(std::span<const Ref<Node<T>>> leaves) = 0;
};

/// The initial gradient of a pass from `output`: the caller's seed, or 1 for one element.
template <class T>
Variable<T> first_gradient(const char* what, const Variable<T>& output, const Variable<T>& seed,
                           bool create_graph);

/// Runs a pass from root, whose gradient is `first`.
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

/// The same gradient with an unshared array.
template <class T>
Variable<T> unshared(Variable<T>&& gradient) {
  return is_sole_owner(gradient) ? std::move(gradient) : clone(gradient);
}

}  // namespace xgrad::detail
