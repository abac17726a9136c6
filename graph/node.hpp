#pragma once

#include <cstdint>
#include <span>

#include "value.hpp"

namespace xgrad {

template <Real T>
class Variable;

/// Which inputs of an op want a gradient, and the shapes of those gradients; computing the others is a waste.
class Needs {
 public:
  /// One entry for each input, null where no gradient is wanted.
  explicit Needs(const Shape* const* shapes) noexcept : shapes_(shapes) {}

  bool operator[](std::size_t input) const noexcept { return shapes_[input] != nullptr; }
  const Shape& shape(std::size_t input) const noexcept { return *shapes_[input]; }

 private:
  const Shape* const* shapes_;
};

namespace detail {

/// Where the gradient of one recorded value collects. It holds no value: what backward needs, the op saves
/// itself.
template <class T>
struct Node {
  Node(const char* name, std::uint64_t creation, const Shape& value_shape)
      : op(name), order(creation), shape(value_shape) {}
  virtual ~Node() = default;
  Node(const Node&) = delete;
  Node& operator=(const Node&) = delete;

  static void* operator new(std::size_t bytes) { return pool_allocate(bytes); }
  static void operator delete(void* block, std::size_t bytes) noexcept { pool_release(block, bytes); }

  /// The nodes that the gradient flows on to; an empty one stands for an input that needs none.
  virtual std::span<const Ref<Node>> inputs() const noexcept = 0;

  /// Calls the op's backward with the gradient of its output; one gradient for each input comes back in
  /// `grads`.
  virtual void differentiate(Variable<T>&& dy, Needs needs, Variable<T>* grads) = 0;

  /// Drops what was saved and the edges.
  virtual void release() noexcept = 0;

  bool is_leaf() const noexcept { return op == nullptr; }

  RefCount refs;
  bool released = false;
  bool wanted = false;       ///< by the pass that marked this node: its gradient is asked for
  bool reached = false;      ///< the pass came here
  bool leads = false;        ///< a gradient that is asked for flows through it
  const char* op;            ///< null for a leaf
  std::uint64_t order;       ///< newer than all inputs: creation order is a topological order
  Shape shape;               ///< of the value and of its gradient
  Ref<Value<T>> grad_value;  ///< the gradient collected so far in a backward pass
  Ref<Node> grad_node;       ///< and its own history, under create_graph
  const void* grad_owner =
      nullptr;                ///< the pass that collects it; a backward may run a pass of its own inside
  std::uint64_t marked = 0;   ///< the number of the pass whose marks these are, the last one that came here
  Node* next_dead = nullptr;  ///< in the list of nodes that wait to be freed
};

/// Frees a node, and what only it kept alive, in a loop: a chain of any length needs no stack.
template <class T>
void dispose(Node<T>* node) noexcept;

/// A creation number above `floor` and above all that this thread gave out.
std::uint64_t next_order(std::uint64_t floor) noexcept;

}  // namespace detail
}  // namespace xgrad
