#include <algorithm>
#include <string>
#include <utility>

#include "../kernels/binary.hpp"
#include "../kernels/product_precision.hpp"
#include "leaf.hpp"
#include "record.hpp"

namespace xgrad {
namespace {

using detail::Access, detail::LeafNode, detail::Node, detail::PartNode, detail::Ref;

template <class T>
bool has_pending(const Node<T>& node) {
  return static_cast<bool>(node.grad_value);
}

template <class T>
Variable<T> take_pending(Node<T>& node) {
  return Access<T>::make(std::move(node.grad_value), std::move(node.grad_node));
}

template <class T>
bool sole_owner(const Variable<T>& v) {
  return Access<T>::value(v)->refs.unique();
}

/// A gradient with an array of its own.
template <class T>
Variable<T> clone(const Variable<T>& x) {
  Variable<T> y = detail::empty<T>(x.shape());
  std::copy_n(detail::data(x), x.size(), detail::data(y));
  return detail::same_elements("clone", std::move(y), x);
}

/// sum += more, in place when nobody else holds the sum's array and neither has a history.
template <class T>
void accumulate(Variable<T>& sum, Variable<T>&& more) {
  if (!sum.requires_grad() && !more.requires_grad() && sole_owner(sum)) {
    kernels::accumulate(detail::data(sum), detail::data(std::as_const(more)), more.size());
  } else {
    sum = add(sum, more);
  }
}

template <class T>
using TakeLeaf = std::function<void(std::size_t, Variable<T>)>;

/// Of the outermost pass of this thread that marks nodes: older marks are of no use any more.
constinit thread_local std::uint64_t oldest_pass = static_cast<std::uint64_t>(-1);

template <class T>
[[noreturn]] void fail_unused(const char* what, const char* kind, std::size_t i, const Node<T>& node) {
  detail::fail<GraphError>(what, ": the output does not depend on ", kind, " ", i, " ", node.shape,
                           "; pass allow_unused to get an undefined gradient for it");
}

/// Whom grad_each() hands gradients to.
template <class T>
struct Taker {
  const TakeLeaf<T>& take;
  std::vector<LeafNode<T>*> waiting{};  // null where the gradient was handed over
};

/// One pass from one output down to the leaves, or to the inputs that grad() asks for.
///
/// The nodes that hold a gradient wait in a heap, newest first: as creation order is a topological order, a
/// node comes up only when all that use it have been there. A pass that throws leaves no node with a
/// half-collected gradient.
template <class T>
class Sweep {
 public:
  Sweep(bool retain_graph, bool create_graph)
      : retain_(retain_graph), mode_(detail::recording, create_graph) {
    heap_.reserve(32);
    leaves_.reserve(32);
    grads_.resize(4);
    needs_.resize(4);
  }

  ~Sweep() {
    for (const Entry& entry : heap_) take_pending(*entry.node);
    for (const Ref<Node<T>>& leaf : leaves_) take_pending(*leaf);
    for (Outer& outer : outer_) {
      outer.node->grad_value = std::move(outer.grad_value);
      outer.node->grad_node = std::move(outer.grad_node);
      outer.node->grad_owner = outer.owner;
    }
    for (const OuterMarks& outer : outer_marks_) outer.put_back();
  }

  /// Asks for the gradients of these alone: of the nodes below root, only those that lead to one are
  /// differentiated, and none of `ends`.
  void only(const Ref<Node<T>>& root, const std::vector<Variable<T>>& inputs,
            const std::vector<Variable<T>>& ends) {
    number_pass();
    selective_ = true;
    auto oldest = static_cast<std::uint64_t>(-1);
    wanted_.reserve(inputs.size());
    for (std::size_t i = 0; i < inputs.size(); ++i) {
      const Ref<Node<T>>& node = Access<T>::node(inputs[i]);
      mark(node);
      node->marks.wanted = node->marks.leads = true;
      wanted_.push_back({node.get(), i});
      oldest = std::min(oldest, node->order);
    }
    std::sort(wanted_.begin(), wanted_.end());
    for (const Variable<T>& end : ends) {
      const Ref<Node<T>>& node = Access<T>::node(end);
      if (!node) continue;
      mark(node);
      node->marks.ends = true;
    }
    found_.resize(inputs.size());

    // depth first, as a node leads if an input does
    std::vector<Step, PoolAllocator<Step>> path;
    const auto enter = [&](const Ref<Node<T>>& node) {
      mark(node);
      if (node->marks.reached) return;
      node->marks.reached = true;
      if (node->released && passed_released_ == nullptr) passed_released_ = node->op;
      const auto inputs_of = node->marks.ends ? std::span<const Ref<Node<T>>>() : node->inputs();
      path.push_back({node.get(), inputs_of.data(), inputs_of.data() + inputs_of.size()});
    };
    enter(root);
    while (!path.empty()) {
      Step& step = path.back();
      if (step.next == step.end) {
        const bool leads = step.node->marks.leads;
        path.pop_back();
        if (leads && !path.empty()) path.back().node->marks.leads = true;
      } else {
        const Ref<Node<T>>& input = *step.next++;
        if (!input || input->order < oldest) continue;
        if (input->marked == pass_ && input->marks.leads) step.node->marks.leads = true;
        enter(input);
      }
    }
  }

  /// Hands over the gradient of each of these leaves when the pass has gone along all edges to it, and at
  /// once nothing for those that no edge leads to.
  void each(const Ref<Node<T>>& root, const std::vector<Variable<T>>& leaves, bool allow_unused,
            Taker<T>& taker) {
    taker_ = &taker;
    number_pass();
    for (std::size_t i = 0; i < leaves.size(); ++i) {
      const Ref<Node<T>>& node = Access<T>::node(leaves[i]);
      auto& leaf = static_cast<LeafNode<T>&>(*node);
      if (leaf.marked == pass_)
        detail::fail<ValueError>("grad_each: leaf ", i, " is leaf ", leaf.place, ", it must be given once");
      mark(node);
      leaf.place = i;
      leaf.edges = 0;
      taker.waiting.push_back(&leaf);
    }
    std::vector<const Node<T>*, PoolAllocator<const Node<T>*>> reached{root.get()};
    while (!reached.empty()) {
      const Node<T>* node = reached.back();
      reached.pop_back();
      if (node->released) fail_released(node->op);
      for (const Ref<Node<T>>& input : node->inputs()) {
        if (!input) continue;
        if (input->is_leaf()) {
          if (input->marked == pass_) ++static_cast<LeafNode<T>&>(*input).edges;
        } else if (input->marked != pass_) {
          mark(input);
          reached.push_back(input.get());
        }
      }
    }
    const auto is_unused = [&](const LeafNode<T>* leaf) { return leaf->edges == 0 && leaf != root.get(); };
    for (std::size_t i = 0; i < leaves.size() && !allow_unused; ++i)
      if (is_unused(taker.waiting[i])) fail_unused("grad_each", "leaf", i, *taker.waiting[i]);
    for (std::size_t i = 0; i < leaves.size(); ++i)
      if (is_unused(taker.waiting[i])) hand_over(i);
  }

  void run(const Ref<Node<T>>& root, Variable<T>&& seed) {
    collect(root, std::move(seed));
    while (!heap_.empty()) {
      std::pop_heap(heap_.begin(), heap_.end(), older);
      const Ref<Node<T>> node = std::move(heap_.back().node);
      heap_.pop_back();
      visit(node);
    }
    if (!selective_) return;
    for (const Ref<Node<T>>& leaf : leaves_) note_if_wanted(*leaf);
  }

  /// Hands over the rest: the output itself, and leaves that an op gave no gradient along one of their edges.
  void take_rest(bool allow_unused) {
    for (std::size_t i = 0; i < taker_->waiting.size(); ++i) {
      const LeafNode<T>* leaf = taker_->waiting[i];
      if (leaf == nullptr) continue;
      if (!has_pending(*leaf) && !allow_unused) fail_unused("grad_each", "leaf", i, *leaf);
      hand_over(i);
    }
  }

  /// Adds what the leaves collected to their grad().
  void commit() {
    for (const Ref<Node<T>>& node : leaves_) {
      auto& leaf = static_cast<LeafNode<T>&>(*node);
      Variable<T> collected = take_pending(leaf);
      if (leaf.grad.defined()) {
        accumulate(leaf.grad, std::move(collected));
      } else {
        leaf.grad = sole_owner(collected) ? std::move(collected) : clone(collected);
      }
    }
    leaves_.clear();
  }

  /// What the wanted nodes collected, each with an array of its own; undefined where nothing came.
  std::vector<Variable<T>> take_found() {
    for (const Ref<Node<T>>& leaf : leaves_) take_pending(*leaf);
    leaves_.clear();
    for (Variable<T>& gradient : found_) {
      if (!gradient.defined() && passed_released_ != nullptr) fail_released(passed_released_);
      if (gradient.defined() && !sole_owner(gradient)) gradient = clone(gradient);
    }
    return std::move(found_);
  }

 private:
  struct Entry {
    std::uint64_t order;
    Ref<Node<T>> node;
  };
  static bool older(const Entry& a, const Entry& b) { return a.order < b.order; }

  /// A gradient that a pass around this one collects in a node that this one needs.
  struct Outer {
    Ref<Node<T>> node;
    Ref<detail::Value<T>> grad_value;
    Ref<Node<T>> grad_node;
    const void* owner;
  };

  /// What a pass around this one, or an earlier one inside of that, marked in a node that this one comes to.
  struct OuterMarks {
    explicit OuterMarks(const Ref<Node<T>>& marked_node)
        : node(marked_node), pass(node->marked), marks(node->marks) {
      if (!node->is_leaf()) return;
      place = static_cast<const LeafNode<T>&>(*node).place;
      edges = static_cast<const LeafNode<T>&>(*node).edges;
    }

    void put_back() const {
      node->marked = pass;
      node->marks = marks;
      if (!node->is_leaf()) return;
      static_cast<LeafNode<T>&>(*node).place = place;
      static_cast<LeafNode<T>&>(*node).edges = edges;
    }

    Ref<Node<T>> node;
    std::uint64_t pass;
    detail::Marks marks;
    std::size_t place = 0, edges = 0;
  };

  /// The gradient of one of several results of an op.
  struct Part {
    const Node<T>* whole;
    std::size_t place;
    Variable<T> dy;
  };

  /// A node on the way down from the output, and where it goes on.
  struct Step {
    Node<T>* node;
    const Ref<Node<T>>* next;
    const Ref<Node<T>>* end;
  };

  [[noreturn]] static void fail_released(const char* op) {
    detail::fail<GraphError>(
        "backward: the graph through '", op,
        "' was released by an earlier backward; pass retain_graph there to go through it again");
  }

  void number_pass() {
    pass_ = detail::next_pass();
    oldest_pass = std::min(oldest_pass_.before(), pass_);
  }

  /// Makes the marks of this node those of this pass.
  void mark(const Ref<Node<T>>& node) {
    if (node->marked == pass_) return;
    if (node->marked >= oldest_pass) [[unlikely]]
      outer_marks_.emplace_back(node);
    node->marked = pass_;
    node->marks = {};
  }

  bool is_needed(const Ref<Node<T>>& input) const {
    return input && (!selective_ || (input->marked == pass_ && input->marks.leads));
  }

  void collect(const Ref<Node<T>>& node, Variable<T>&& grad) {
    if (has_pending(*node) && node->grad_owner != this) {
      outer_.push_back({node, std::move(node->grad_value), std::move(node->grad_node), node->grad_owner});
    }
    node->grad_owner = this;
    if (has_pending(*node)) {
      Variable<T> sum = take_pending(*node);
      accumulate(sum, std::move(grad));
      grad = std::move(sum);
    } else if (node->is_leaf()) {
      leaves_.push_back(node);
    } else {
      heap_.push_back({node->order, node});
      std::push_heap(heap_.begin(), heap_.end(), older);
    }
    node->grad_value = std::move(Access<T>::value(grad));
    node->grad_node = std::move(Access<T>::node(grad));
  }

  void hand_over(std::size_t place) {
    LeafNode<T>& leaf = *std::exchange(taker_->waiting[place], nullptr);
    Variable<T> gradient;
    if (has_pending(leaf)) {
      gradient = take_pending(leaf);
      if (!sole_owner(gradient)) gradient = clone(gradient);
    }
    taker_->take(place, std::move(gradient));
  }

  /// The pass has gone along these edges.
  [[gnu::cold, gnu::noinline]] void count_down(std::span<const Ref<Node<T>>> inputs) {
    for (const Ref<Node<T>>& input : inputs) {
      if (!input || !input->is_leaf() || input->marked != pass_) continue;
      auto& leaf = static_cast<LeafNode<T>&>(*input);
      if (--leaf.edges == 0 && has_pending(leaf)) hand_over(leaf.place);
    }
  }

  void note_if_wanted(const Node<T>& node) {
    if (!node.marks.wanted) return;
    auto it = std::lower_bound(wanted_.begin(), wanted_.end(), Wanted{&node, 0});
    for (; it != wanted_.end() && it->first == &node; ++it)
      found_[it->second] = Access<T>::make(node.grad_value, node.grad_node);
  }

  void visit(const Ref<Node<T>>& node) {
    if (selective_) note_if_wanted(*node);
    Variable<T> dy = take_pending(*node);
    if (node->released && !selective_) [[unlikely]]
      fail_released(node->op);
    if (selective_ && node->marks.ends) return;
    if (node->is_part) [[unlikely]]
      return keep_part(static_cast<PartNode<T>&>(*node), std::move(dy));
    const auto inputs = node->inputs();
    if (grads_.size() < inputs.size()) {
      grads_.resize(inputs.size());
      needs_.resize(inputs.size());
    }
    bool any = false;
    for (std::size_t i = 0; i < inputs.size(); ++i) {
      needs_[i] = is_needed(inputs[i]) ? &inputs[i]->shape : nullptr;
      any = any || needs_[i] != nullptr;
    }
    if (!any) return;
    if (node->results > 1) [[unlikely]] {
      std::vector<Variable<T>> dys = take_parts(*node);
      differentiate(*node, dys.data(), inputs.size());
    } else {
      differentiate(*node, &dy, inputs.size());
    }
    for (std::size_t i = 0; i < inputs.size(); ++i) {
      Variable<T> grad = std::move(grads_[i]);
      if (!grad.defined() || needs_[i] == nullptr) continue;
      if (!same_shape(grad.shape(), inputs[i]->shape)) [[unlikely]] {
        detail::fail<ShapeError>("backward: '", node->op, "' must return a gradient of shape ",
                                 inputs[i]->shape, " for input ", i, ", got ", grad.shape());
      }
      collect(inputs[i], std::move(grad));
    }
    if (taker_ != nullptr) [[unlikely]]
      count_down(inputs);
    if (retain_) return;
    node->release();
    node->released = true;
  }

  /// The gradient of one of several results waits until those of the others have come; then the op's own node
  /// comes up, as it is older.
  void keep_part(PartNode<T>& part, Variable<T>&& dy) {
    if (!is_needed(part.whole)) return;
    if (part.whole->released) {
      if (selective_) return;
      fail_released(part.op);
    }
    const auto is_of_same = [&](const Part& other) { return other.whole == part.whole.get(); };
    if (std::none_of(parts_.begin(), parts_.end(), is_of_same)) {
      heap_.push_back({part.whole->order, part.whole});
      std::push_heap(heap_.begin(), heap_.end(), older);
    }
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

  void differentiate(Node<T>& node, Variable<T>* dys, std::size_t inputs) {
    const kernels::PartsScope as_forward(static_cast<kernels::Parts>(node.precision));
    if (!detail::is_watched()) [[likely]]
      return node.differentiate(dys, Needs(needs_.data()), grads_.data());
    // an op with several results is known by the number of the first, which is the next one
    const std::uint64_t number = node.order + (node.results > 1 ? 1 : 0);
    detail::tell_backward_begin(node.op, number, *dys);
    node.differentiate(dys, Needs(needs_.data()), grads_.data());
    for (std::size_t i = 0; i < inputs; ++i) {
      if (needs_[i] == nullptr) grads_[i] = {};
    }
    detail::tell_backward_end<T>(node.op, number, {grads_.data(), inputs});
  }

  bool retain_;
  detail::ScopedValue<bool> mode_;
  detail::ScopedValue<bool> in_backward_{detail::in_backward, true};
  std::vector<Entry, PoolAllocator<Entry>> heap_;
  std::vector<Ref<Node<T>>, PoolAllocator<Ref<Node<T>>>> leaves_;
  std::vector<Variable<T>, PoolAllocator<Variable<T>>> grads_;
  std::vector<const Shape*, PoolAllocator<const Shape*>> needs_;
  std::vector<Part> parts_;
  std::vector<Outer> outer_;
  detail::ScopedValue<std::uint64_t> oldest_pass_{oldest_pass, oldest_pass};
  std::uint64_t pass_ = 0;  // 0 if the pass marks nothing
  std::vector<OuterMarks> outer_marks_;
  bool selective_ = false;                                // goes only to the wanted nodes
  using Wanted = std::pair<const Node<T>*, std::size_t>;  // and its place among the inputs
  std::vector<Wanted, PoolAllocator<Wanted>> wanted_;     // sorted
  std::vector<Variable<T>> found_;
  const char* passed_released_ = nullptr;  // the op of a released node on the way
  Taker<T>* taker_ = nullptr;
};

/// The seed that the caller gave, or 1 for an output with one element.
template <class T>
Variable<T> checked_seed(const char* what, const Variable<T>& output, const Variable<T>& seed) {
  if (!output.defined()) detail::fail<GraphError>(what, ": the variable is undefined");
  if (!output.requires_grad()) {
    detail::fail<GraphError>(what, ": the variable ", output.shape(),
                             " has no graph: nothing it was computed from requires a gradient");
  }
  if (!seed.defined()) {
    if (output.size() != 1) {
      detail::fail<GraphError>(what, ": without a seed the variable must have one element, got shape ",
                               output.shape());
    }
    Variable<T> one = detail::empty<T>(output.shape());
    *detail::data(one) = T{1};
    return one;
  }
  if (seed.shape() != output.shape()) {
    detail::fail<ShapeError>(what, ": seed must have the variable's shape ", output.shape(), ", got ",
                             seed.shape());
  }
  return seed;
}

}  // namespace

template <Real T>
void Variable<T>::backward(const Variable& seed, BackwardOptions options) const {
  Variable start = checked_seed("backward", *this, seed);
  if (!options.create_graph) start = start.detach();
  Sweep<T> sweep(options.retain_graph || options.create_graph, options.create_graph);
  sweep.run(node_, std::move(start));
  sweep.commit();
}

template <Real T>
void Variable<T>::backward(BackwardOptions options) const {
  backward(Variable(), options);
}

template <class T>
std::vector<Variable<T>> detail::grad_down_to(const std::vector<Variable<T>>& ends, const Variable<T>& output,
                                              const std::vector<Variable<T>>& inputs,
                                              const GradOptions<T>& options) {
  Variable<T> start = checked_seed("grad", output, options.seed);
  if (!options.create_graph) start = start.detach();
  if (inputs.empty()) detail::fail<ValueError>("grad: inputs must not be empty");
  for (std::size_t i = 0; i < inputs.size(); ++i) {
    if (!inputs[i].requires_grad())
      detail::fail<GraphError>("grad: input ", i, " does not require a gradient");
  }
  Sweep<T> sweep(options.retain_graph || options.create_graph, options.create_graph);
  sweep.only(Access<T>::node(output), inputs, ends);
  sweep.run(Access<T>::node(output), std::move(start));
  std::vector<Variable<T>> found = sweep.take_found();
  for (std::size_t i = 0; i < found.size(); ++i) {
    if (!found[i].defined() && !options.allow_unused)
      fail_unused("grad", "input", i, *Access<T>::node(inputs[i]));
  }
  return found;
}

template <class T>
std::vector<Variable<T>> grad(const Variable<T>& output, const std::vector<Variable<T>>& inputs,
                              const GradOptions<std::type_identity_t<T>>& options) {
  return detail::grad_down_to({}, output, inputs, options);
}

template <class T>
void grad_each(const Variable<T>& output, const std::vector<Variable<T>>& leaves,
               const std::function<void(std::size_t, Variable<std::type_identity_t<T>>)>& take,
               const GradOptions<std::type_identity_t<T>>& options) {
  Variable<T> start = checked_seed("grad_each", output, options.seed);
  if (!options.create_graph) start = start.detach();
  if (!take) detail::fail<ValueError>("grad_each: take must be a function, got none");
  if (leaves.empty()) detail::fail<ValueError>("grad_each: leaves must not be empty");
  for (std::size_t i = 0; i < leaves.size(); ++i) {
    if (leaves[i].requires_grad() && leaves[i].is_leaf()) continue;
    const std::string given = !leaves[i].defined()  ? "an undefined variable"
                              : leaves[i].is_leaf() ? "one that does not require any"
                                                    : detail::join({"the result of '", leaves[i].op(), "'"});
    detail::fail<GraphError>("grad_each: leaf ", i, " must be a leaf that requires a gradient, got ", given);
  }
  Taker<T> taker{take};
  Sweep<T> sweep(options.retain_graph || options.create_graph, options.create_graph);
  sweep.each(Access<T>::node(output), leaves, options.allow_unused, taker);
  sweep.run(Access<T>::node(output), std::move(start));
  sweep.take_rest(options.allow_unused);
}

template void Variable<float>::backward(const Variable&, BackwardOptions) const;
template void Variable<double>::backward(const Variable&, BackwardOptions) const;
template void Variable<float>::backward(BackwardOptions) const;
template void Variable<double>::backward(BackwardOptions) const;
template void grad_each(const Variable<float>&, const std::vector<Variable<float>>&,
                        const std::function<void(std::size_t, Variable<float>)>&, const GradOptions<float>&);
template void grad_each(const Variable<double>&, const std::vector<Variable<double>>&,
                        const std::function<void(std::size_t, Variable<double>)>&,
                        const GradOptions<double>&);
template std::vector<Variable<float>> detail::grad_down_to(const std::vector<Variable<float>>&,
                                                           const Variable<float>&,
                                                           const std::vector<Variable<float>>&,
                                                           const GradOptions<float>&);
template std::vector<Variable<double>> detail::grad_down_to(const std::vector<Variable<double>>&,
                                                            const Variable<double>&,
                                                            const std::vector<Variable<double>>&,
                                                            const GradOptions<double>&);
template std::vector<Variable<float>> grad(const Variable<float>&, const std::vector<Variable<float>>&,
                                           const GradOptions<float>&);
template std::vector<Variable<double>> grad(const Variable<double>&, const std::vector<Variable<double>>&,
                                            const GradOptions<double>&);

}  // namespace xgrad
