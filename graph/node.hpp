#pragma once

#include <cstdint>
#include <span>

#include "matmul_precision.hpp"
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

/// What a pass that goes through a part of the graph only notes in a node.
struct Marks {
  bool wanted : 1 = false;   ///< its gradient is asked for
  bool reached : 1 = false;  ///< the pass came here
  bool leads : 1 = false;    ///< a gradient that is asked for flows through it
  bool ends : 1 = false;     ///< the pass does not go on from here
};

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

  /// Calls the op's backward with the gradients of its results, of which most ops have one; one gradient for
  /// each input comes back in `grads`.
  virtual void differentiate(Variable<T>* dys, Needs needs, Variable<T>* grads) = 0;

  /// The node of a result.
  virtual Ref<Node> result(std::size_t place) = 0;

  /// Drops what was saved and the edges.
  virtual void release() noexcept = 0;

  bool is_leaf() const noexcept { return op == nullptr; }

  RefCount refs;
  bool released = false;
  Marks marks;
  std::uint8_t results = 1;  ///< how many the op has; those of several have PartNodes, too
  bool is_part = false;      ///< a PartNode
  MatmulPrecision precision = float32_matmul_precision();  ///< of the forward, for the backward
  const char* op;                                          ///< null for a leaf
  std::uint64_t order;       ///< newer than all inputs: creation order is a topological order
  Shape shape;               ///< of the value and of its gradient
  Ref<Value<T>> grad_value;  ///< the gradient collected so far in a backward pass
  Ref<Node> grad_node;       ///< and its own history, under create_graph
  const void* grad_owner =
      nullptr;                ///< the pass that collects it; a backward may run a pass of its own inside
  std::uint64_t marked = 0;   ///< the number of the pass whose marks these are, the last one that came here
  Node* next_dead = nullptr;  ///< in the list of nodes that wait to be freed
};

/// Where the gradient of one of several results of an op collects, on its way to the op's own node.
template <class T>
struct PartNode final : Node<T> {
  PartNode(const Ref<Node<T>>& op_node, std::size_t which, std::uint64_t creation, const Shape& value_shape)
      : Node<T>(op_node->op, creation, value_shape), whole(op_node), place(which) {
    this->is_part = true;
  }

  std::span<const Ref<Node<T>>> inputs() const noexcept override { return {&whole, 1}; }
  void differentiate(Variable<T>*, Needs, Variable<T>*) override {}
  Ref<Node<T>> result(std::size_t) override { return Ref<Node<T>>(this); }
  void release() noexcept override {}

  Ref<Node<T>> whole;
  std::size_t place;
};

/// Frees a node, and what only it kept alive, in a loop: a chain of any length needs no stack.
template <class T>
void dispose(Node<T>* node) noexcept;

/// The number of a pass that marks nodes; of all threads, which may go through one graph one after the other.
std::uint64_t next_pass() noexcept;

/// A creation number above `floor` and above all that this thread gave out.
std::uint64_t next_order(std::uint64_t floor) noexcept;

}  // namespace detail
}  // namespace xgrad
