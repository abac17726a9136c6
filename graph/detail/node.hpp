#pragma once

#include <cstdint>
#include <span>

#include "../../base/detail/arrays/value.hpp"
#include "../../base/detail/module_frame.hpp"
#include "../../base/detail/product_precision.hpp"
#include "../op.hpp"

namespace xgrad {

template <Real T>
class Variable;

/// Which inputs of an op need a gradient, and the shapes of those gradients; the others need not be computed.
class Needs {
 public:
  /// One entry for each input, null if it needs no gradient. `inputs` are the nodes of the inputs, whose sums
  /// belong to `pass`; null if none may change.
  explicit Needs(const Shape* const* shapes, const void* inputs = nullptr,
                 const void* pass = nullptr) noexcept
      : shapes_(shapes), inputs_(inputs), pass_(pass) {}

  bool operator[](std::size_t input) const noexcept { return shapes_[input] != nullptr; }
  const Shape& shape(std::size_t input) const noexcept { return *shapes_[input]; }

  /// The sum of the gradients that the input got so far: a backward whose own gradient is mostly zeros adds
  /// to it, with the bits of sum + gradient, and returns an undefined one. Null if there is none yet, or if
  /// it must not change.
  template <class T>
  T* sum(std::size_t input) const noexcept;

 private:
  const Shape* const* shapes_;
  const void *inputs_, *pass_;
};

namespace detail {

/// A creation number greater than `floor` and all previous ones of this thread.
std::uint64_t next_order(std::uint64_t floor) noexcept;

/// Accumulates the gradient of one recorded value. Holds no value: the op saves what its backward needs.
template <class T>
struct Node {
  Node(const OpInfo* made_by, std::uint64_t creation, const Shape& value_shape)
      : op(made_by), order(creation), shape(value_shape) {}
  virtual ~Node() = default;
  Node(const Node&) = delete;
  Node& operator=(const Node&) = delete;

  static void* operator new(std::size_t bytes) { return pool_allocate(bytes); }
  static void operator delete(void* block, std::size_t bytes) noexcept { pool_release(block, bytes); }

  /// The nodes of the op's inputs; empty for an input that needs no gradient.
  virtual std::span<const Ref<Node>> inputs() const noexcept = 0;

  /// Calls the op's backward with the gradients of its results (one for most ops), and stores one gradient
  /// for each input in `grads`.
  virtual void differentiate(Variable<T>* dys, Needs needs, Variable<T>* grads) = 0;

  /// Releases the saved values, unless recompute() needs them, and the edges.
  virtual void release() noexcept = 0;

  virtual bool can_recompute() const noexcept { return false; }

  /// Computes the op's result again from what it saved; undefined unless can_recompute().
  virtual Variable<T> recompute() { return {}; }

  bool is_leaf() const noexcept { return op == nullptr; }

  RefCount refs;
  RefCount recomputations;  ///< how many saved values call recompute()
  bool released = false;
  std::uint8_t results = 1;  ///< number of results of the op; if several, each has a PartNode
  bool is_part = false;      ///< true for a PartNode
  bool frozen = false;       ///< a leaf that gets no gradient for now
  bool rounds_products = products_may_be_rounded();  ///< in the forward, for the backward
  const OpInfo* op;                                  ///< null for a leaf
  std::uint64_t order;  ///< greater than that of all inputs: creation order is a topological order
  const std::uint64_t module = running_module();  ///< that called the op, for errors in its backward
  Shape shape;                                    ///< of the value and of its gradient
  Ref<Value<T>> grad_value;                       ///< the gradient accumulated so far in a backward pass
  Ref<Node> grad_node;                            ///< its node, under create_graph
  const void* grad_owner = nullptr;  ///< the pass that accumulates it; a backward may run a nested pass
  std::size_t number = static_cast<std::size_t>(-1);  ///< index in the NodeSet that it was last inserted into
  Node* next_dead = nullptr;                          ///< in the list of nodes to be freed
};

}  // namespace detail

template <class T>
T* Needs::sum(std::size_t input) const noexcept {
  if (inputs_ == nullptr) return nullptr;
  const detail::Node<T>& node = *static_cast<const detail::Ref<detail::Node<T>>*>(inputs_)[input];
  const bool is_own = node.grad_value && node.grad_owner == pass_ && !node.grad_node;
  return is_own && node.grad_value->refs.unique() ? node.grad_value->array.data() : nullptr;
}

namespace detail {

/// Accumulates the gradient of one of several results of an op, before the op's node.
template <class T>
struct PartNode final : Node<T> {
  PartNode(Node<T>& op_node, std::size_t which, const Shape& value_shape)
      : Node<T>(op_node.op, next_order(op_node.order), value_shape), whole(&op_node), place(which) {
    this->is_part = true;
  }

  std::span<const Ref<Node<T>>> inputs() const noexcept override { return {&whole, 1}; }
  void differentiate(Variable<T>*, Needs, Variable<T>*) override {}
  void release() noexcept override {}

  Ref<Node<T>> whole;
  std::size_t place;
};

/// The node of a result of an op.
template <class T>
inline Ref<Node<T>> node_of_result(Node<T>& op, std::size_t place, const Shape& shape) {
  return Ref<Node<T>>(op.results > 1 ? new PartNode<T>(op, place, shape) : &op);
}

/// Frees a node and all nodes that only it owns, iteratively: a chain of any length needs no stack.
template <class T>
void dispose(Node<T>* node) noexcept;

}  // namespace detail
}  // namespace xgrad
