#include <algorithm>
#include <vector>

#include "../kernels/pointwise/binary.hpp"
#include "detail/pass.hpp"
#include "record.hpp"

namespace xgrad {
namespace detail {
namespace {

/// sum += more, in place when nobody else holds the sum's array and neither has a history.
template <class T>
void accumulate(Variable<T>& sum, Variable<T>&& more) {
  if (!sum.requires_grad() && !more.requires_grad() && is_sole_owner(sum)) {
    kernels::accumulate(data(sum), data(std::as_const(more)), more.size());
  } else {
    sum = add(sum, more);
  }
}

/// The nodes that hold a gradient wait in a heap, newest first: as creation order is a topological order, a
/// node comes up only when all that use it have been there. A pass that throws leaves no node with a
/// half-collected gradient.
template <class T>
class BackwardPass {
 public:
  /// Goes everywhere without a route.
  BackwardPass(Route<T>* route, bool retain_graph, bool create_graph)
      : route_(route), retain_(retain_graph || create_graph), recording_(recording, create_graph) {
    heap_.reserve(32);
    leaves_.reserve(32);
    grads_.resize(4);
    needs_.resize(4);
  }

  ~BackwardPass() {
    for (const Entry& entry : heap_) static_cast<void>(take_pending(*entry.node));
    for (const Ref<Node<T>>& leaf : leaves_) static_cast<void>(take_pending(*leaf));
    for (Outer& outer : outer_) outer.put_back();
  }
  BackwardPass(const BackwardPass&) = delete;
  BackwardPass& operator=(const BackwardPass&) = delete;

  /// Returns the leaves that it came to, whose gradients are pending.
  std::span<const Ref<Node<T>>> run(const Ref<Node<T>>& root, Variable<T>&& seed) {
    collect(root, std::move(seed));
    while (!heap_.empty()) {
      std::pop_heap(heap_.begin(), heap_.end(), is_older);
      const Ref<Node<T>> node = std::move(heap_.back().node);
      heap_.pop_back();
      visit(*node);
    }
    return leaves_;
  }

 private:
  struct Entry {
    std::uint64_t order;
    Ref<Node<T>> node;
  };
  static bool is_older(const Entry& a, const Entry& b) { return a.order < b.order; }

  /// A gradient that a pass around this one collects in a node that this one needs.
  struct Outer {
    Ref<Node<T>> node;
    Variable<T> pending;
    const void* owner;

    void put_back() {
      node->grad_value = std::move(Access<T>::value(pending));
      node->grad_node = std::move(Access<T>::node(pending));
      node->grad_owner = owner;
    }
  };

  /// The gradient of one of several results of an op.
  struct Part {
    const Node<T>* whole;
    std::size_t place;
    Variable<T> dy;
  };

  void wait(const Ref<Node<T>>& node) {
    heap_.push_back({node->order, node});
    std::push_heap(heap_.begin(), heap_.end(), is_older);
  }

  bool is_needed(const Ref<Node<T>>& input) const {
    return input && !input->frozen && (route_ == nullptr || route_->leads_to(*input));
  }

  void collect(const Ref<Node<T>>& node, Variable<T>&& grad) {
    if (has_pending(*node) && node->grad_owner != this)
      outer_.push_back({node, take_pending(*node), node->grad_owner});
    node->grad_owner = this;
    if (has_pending(*node)) {
      Variable<T> sum = take_pending(*node);
      accumulate(sum, std::move(grad));
      grad = std::move(sum);
    } else if (node->is_leaf()) {
      leaves_.push_back(node);
    } else {
      wait(node);
    }
    node->grad_value = std::move(Access<T>::value(grad));
    node->grad_node = std::move(Access<T>::node(grad));
  }

  void visit(Node<T>& node) {
    const ModuleFrame caller{node.module, nullptr, module_frame};
    const ScopedValue<const ModuleFrame*> named(module_frame, &caller);
    Variable<T> dy = take_pending(node);
    if (route_ != nullptr) {
      if (!route_->arrive(node, dy)) return;
    } else if (node.released) {
      fail_released(node.op->name);
    }
    if (node.is_part) [[unlikely]]
      return keep(static_cast<PartNode<T>&>(node), std::move(dy));
    const auto inputs = node.inputs();
    if (grads_.size() < inputs.size()) {
      grads_.resize(inputs.size());
      needs_.resize(inputs.size());
    }
    bool any = false;
    for (std::size_t i = 0; i < inputs.size(); ++i) {
      needs_[i] = is_needed(inputs[i]) ? &inputs[i]->shape : nullptr;
      any = any || needs_[i] != nullptr;
    }
    if (!any) {
      if (!retain_ && route_ == nullptr) release(node);
      return;
    }
    if (node.results > 1) [[unlikely]] {
      differentiate(node, take_parts(node).data(), inputs);
    } else {
      differentiate(node, &dy, inputs);
    }
    for (std::size_t i = 0; i < inputs.size(); ++i) {
      Variable<T> grad = std::move(grads_[i]);
      if (!grad.defined() || needs_[i] == nullptr) continue;
      if (!same_shape(grad.shape(), inputs[i]->shape)) [[unlikely]] {
        fail<ShapeError>("backward: '", node.op->name, "' must return a gradient of shape ", inputs[i]->shape,
                         " for input ", i, ", got ", grad.shape());
      }
      collect(inputs[i], std::move(grad));
    }
    if (route_ != nullptr) route_->passed(inputs);
    if (!retain_) release(node);
  }

  static void release(Node<T>& node) {
    node.release();
    node.released = true;
  }

  void differentiate(Node<T>& node, Variable<T>* dys, std::span<const Ref<Node<T>>> inputs) {
    const RoundingScope as_forward(node.rounds_products);
    if (!is_watched()) [[likely]] {
      const Needs needs(needs_.data(), recording ? nullptr : inputs.data(), this);
      return node.differentiate(dys, needs, grads_.data());
    }
    // an op with several results is known by the number of the first, which is the next one
    const std::uint64_t number = node.order + (node.results > 1 ? 1 : 0);
    notify_backward_begin(*node.op, number, *dys);
    node.differentiate(dys, Needs(needs_.data()), grads_.data());
    for (std::size_t i = 0; i < inputs.size(); ++i)
      if (needs_[i] == nullptr) grads_[i] = {};
    notify_backward_end<T>(*node.op, number, {grads_.data(), inputs.size()});
  }

  /// The gradient of one of several results waits until those of the others have come; then the op's own node
  /// comes up, as it is older.
  void keep(const PartNode<T>& part, Variable<T>&& dy) {
    if (!is_needed(part.whole)) return;
    const auto is_of_same = [&](const Part& other) { return other.whole == part.whole.get(); };
    if (std::none_of(parts_.begin(), parts_.end(), is_of_same)) wait(part.whole);
    parts_.push_back({part.whole.get(), part.place, std::move(dy)});
  }

  /// The gradients of an op's results, undefined for those that none came for.
  std::vector<Variable<T>> take_parts(const Node<T>& whole) {
    std::vector<Variable<T>> dys(whole.results);
    for (Part& part : parts_) {
      if (part.whole != &whole) continue;
      Variable<T>& dy = dys[part.place];
      if (dy.defined()) {
        accumulate(dy, std::move(part.dy));
      } else {
        dy = std::move(part.dy);
      }
    }
    std::erase_if(parts_, [&](const Part& part) { return part.whole == &whole; });
    return dys;
  }

  Route<T>* route_;
  bool retain_;
  ScopedValue<bool> recording_, in_backward_{in_backward, true};
  std::vector<Entry, PoolAllocator<Entry>> heap_;
  std::vector<Ref<Node<T>>, PoolAllocator<Ref<Node<T>>>> leaves_;
  std::vector<Variable<T>, PoolAllocator<Variable<T>>> grads_;    // of the inputs of one node
  std::vector<const Shape*, PoolAllocator<const Shape*>> needs_;  // their shapes, null where not needed
  std::vector<Part> parts_;
  std::vector<Outer> outer_;
};

}  // namespace

constexpr Op clone_op("clone", {"gradient"});

template <class T>
Variable<T> clone(const Variable<T>& gradient) {
  Variable<T> y = empty<T>(gradient.shape());
  std::copy_n(data(gradient), y.size(), data(y));
  return same_elements(clone_op, std::move(y), gradient);
}

template <class T>
Variable<T> first_gradient(const char* what, const Variable<T>& output, const Variable<T>& seed,
                           bool create_graph) {
  if (!output.defined()) fail<GraphError>(what, ": the variable is undefined (moved from?)");
  if (!output.requires_grad()) {
    fail<GraphError>(what, ": the variable ", output.shape(),
                     " has no graph: nothing it was computed from requires a gradient");
  }
  if (seed.defined()) {
    if (seed.shape() != output.shape()) {
      fail<ShapeError>(what, ": seed must have the variable's shape ", output.shape(), ", got ",
                       seed.shape());
    }
    return create_graph ? seed : seed.detach();
  }
  if (output.size() != 1) {
    fail<GraphError>(what, ": without a seed the variable must have one element, got shape ", output.shape());
  }
  Variable<T> one = empty<T>(output.shape());
  *data(one) = T{1};
  return one;
}

template <class T>
void run_along(Route<T>& route, const Ref<Node<T>>& root, Variable<T>&& first, bool retain_graph,
               bool create_graph) {
  BackwardPass<T> pass(&route, retain_graph, create_graph);
  route.begin();
  route.finish(pass.run(root, std::move(first)));
}

void fail_released(const char* op) {
  fail<GraphError>(
      "backward: the graph through '", op,
      "' was released by an earlier backward; pass retain_graph there to go through it again, or detach() "
      "what is carried over");
}

}  // namespace detail

template <Real T>
void Variable<T>::backward(const Variable& seed, BackwardOptions options) const {
  Variable first = detail::first_gradient("backward", *this, seed, options.create_graph);
  detail::BackwardPass<T> pass(nullptr, options.retain_graph, options.create_graph);
  for (const detail::Ref<detail::Node<T>>& node : pass.run(node_, std::move(first))) {
    auto& leaf = static_cast<detail::LeafNode<T>&>(*node);
    Variable collected = detail::take_pending(leaf);
    if (leaf.grad.defined()) {
      detail::accumulate(leaf.grad, std::move(collected));
    } else {
      leaf.grad = detail::unshared(std::move(collected));
    }
  }
}

template <Real T>
void Variable<T>::backward(BackwardOptions options) const {
  backward(Variable(), options);
}

#define XGRAD_INSTANTIATE(T)                                                                              \
  template Variable<T> detail::clone(const Variable<T>&);                                                 \
  template Variable<T> detail::first_gradient(const char*, const Variable<T>&, const Variable<T>&, bool); \
  template void detail::run_along(Route<T>&, const Ref<Node<T>>&, Variable<T>&&, bool, bool);             \
  template void Variable<T>::backward(const Variable&, BackwardOptions) const;                            \
  template void Variable<T>::backward(BackwardOptions) const;

XGRAD_INSTANTIATE(float)
XGRAD_INSTANTIATE(double)

}  // namespace xgrad
