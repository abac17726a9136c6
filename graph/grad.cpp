#include <algorithm>
#include <string>

#include "detail/node_set.hpp"
#include "detail/pass.hpp"

namespace xgrad {
namespace {

using detail::Access, detail::LeafNode, detail::Node, detail::Ref;

template <class T>
[[noreturn]] void fail_unused(const char* what, const char* kind, std::size_t i, const Node<T>& node) {
  detail::fail<GraphError>(what, ": the output does not depend on ", kind, " ", i, " ", node.shape,
                           "; pass allow_unused to get an undefined gradient for it");
}

/// Only along the edges that lead from an output to the inputs whose gradients are asked for, and not on from
/// `ends`.
template <class T>
class TowardsInputs final : public detail::Route<T> {
 public:
  TowardsInputs(const Ref<Node<T>>& root, const std::vector<Variable<T>>& inputs,
                const std::vector<Variable<T>>& ends) {
    marks_.reserve(32);
    auto oldest = static_cast<std::uint64_t>(-1);
    for (const Variable<T>& input : inputs) {  // first of all: theirs are the first numbers
      const Ref<Node<T>>& node = Access<T>::node(input);
      mark(node).leads = true;
      numbers_.push_back(node->number);
      oldest = std::min(oldest, node->order);
    }
    found_.resize(marks_.size());
    for (const Variable<T>& end : ends)
      if (end.requires_grad()) mark(Access<T>::node(end)).is_end = true;
    search(root, oldest);
  }

  bool arrive(const Node<T>& node, const Variable<T>& dy) override {
    const std::size_t number = nodes_.find(node);
    if (number < found_.size()) found_[number] = dy;
    return !marks_.at(number).is_end;
  }
  bool leads_to(const Node<T>& node) const override {
    const std::size_t number = nodes_.find(node);
    return number != nodes_.none && marks_[number].leads;
  }
  void finish(std::span<const Ref<Node<T>>> leaves) override {
    for (const Ref<Node<T>>& leaf : leaves) {
      Variable<T> dy = detail::take_pending(*leaf);
      if (const std::size_t number = nodes_.find(*leaf); number < found_.size())
        found_[number] = std::move(dy);
    }
  }

  /// What the inputs collected, each with an array of its own; undefined where nothing came.
  std::vector<Variable<T>> take_found() {
    std::vector<Variable<T>> gradients;
    gradients.reserve(numbers_.size());
    for (const std::size_t number : numbers_) gradients.push_back(found_[number]);
    found_.clear();
    for (Variable<T>& gradient : gradients) {
      if (gradient.defined()) {
        gradient = detail::unshared(std::move(gradient));
      } else if (released_ != nullptr) {
        detail::fail_released(released_);
      }
    }
    return gradients;
  }

 private:
  struct Mark {
    bool is_end = false, was_reached = false;
    bool leads = false;  // to an input, or is one
  };

  /// A node on the way down from the output, and where it goes on.
  struct Step {
    std::size_t number;
    const Ref<Node<T>>* next;
    const Ref<Node<T>>* end;
  };

  Mark& mark(const Ref<Node<T>>& node) {
    const auto [number, is_new] = nodes_.insert(node);
    if (is_new) marks_.emplace_back();
    return marks_[number];
  }

  /// Depth first, as a node leads to an input if one of its own inputs does.
  void search(const Ref<Node<T>>& root, std::uint64_t oldest) {
    std::vector<Step, PoolAllocator<Step>> path;
    path.reserve(32);
    const auto reach = [&](const Ref<Node<T>>& node) {
      Mark& its = mark(node);
      if (!std::exchange(its.was_reached, true)) {
        if (node->released && released_ == nullptr) released_ = node->op->name;
        const auto inputs = its.is_end ? std::span<const Ref<Node<T>>>() : node->inputs();
        path.push_back({node->number, inputs.data(), inputs.data() + inputs.size()});
      }
      return its.leads;
    };
    reach(root);
    while (!path.empty()) {
      auto& [number, next, end] = path.back();
      if (next == end) {
        const bool leads = marks_[number].leads;
        path.pop_back();
        if (leads && !path.empty()) marks_[path.back().number].leads = true;
      } else if (const Ref<Node<T>>& input = *next++; input && input->order >= oldest) {
        const std::size_t from = number;  // reach() may move the step
        if (reach(input)) marks_[from].leads = true;
      }
    }
  }

  detail::NodeSet<T> nodes_;
  std::vector<Mark, PoolAllocator<Mark>> marks_;  // by their numbers
  std::vector<std::size_t> numbers_;              // of the inputs, which may be there twice
  std::vector<Variable<T>> found_;
  const char* released_ = nullptr;  // the op of a released node on the way
};

template <class T>
using GradientSink = std::function<void(std::size_t, Variable<T>)>;

/// Along all edges; the gradient of each of some leaves is handed over when the pass has gone along all edges
/// to it.
template <class T>
class LeafByLeaf final : public detail::Route<T> {
 public:
  LeafByLeaf(const Ref<Node<T>>& root, const std::vector<Variable<T>>& leaves, bool allow_unused,
             const GradientSink<T>& take)
      : root_(*root), allow_unused_(allow_unused), take_(take) {
    for (std::size_t i = 0; i < leaves.size(); ++i) {
      const Ref<Node<T>>& node = Access<T>::node(leaves[i]);
      const auto [number, is_new] = nodes_.insert(node);
      if (!is_new)
        detail::fail<ValueError>("grad_each: leaf ", i, " is leaf ", number, ", it must be given once");
      waiting_.push_back({&static_cast<LeafNode<T>&>(*node)});
    }
    count_edges();
  }

  /// Hands over nothing for those that no edge leads to.
  void begin() override {
    const auto is_unused = [this](const Waiting& one) { return one.edges == 0 && one.leaf != &root_; };
    for (std::size_t i = 0; i < waiting_.size() && !allow_unused_; ++i)
      if (is_unused(waiting_[i])) fail_unused("grad_each", "leaf", i, *waiting_[i].leaf);
    for (std::size_t i = 0; i < waiting_.size(); ++i)
      if (is_unused(waiting_[i])) hand_over(i);
  }

  void passed(std::span<const Ref<Node<T>>> inputs) override {
    for (const Ref<Node<T>>& input : inputs) {
      const std::size_t place = input && input->is_leaf() ? nodes_.find(*input) : nodes_.none;
      if (place == nodes_.none) continue;
      Waiting& one = waiting_[place];
      if (--one.edges == 0 && detail::has_pending(*one.leaf)) hand_over(place);
    }
  }

  /// Hands over the rest: the output itself, and leaves that an op gave no gradient along one of their edges.
  void finish(std::span<const Ref<Node<T>>>) override {
    for (std::size_t i = 0; i < waiting_.size(); ++i) {
      const LeafNode<T>* const leaf = waiting_[i].leaf;
      if (leaf == nullptr) continue;
      if (!detail::has_pending(*leaf) && !allow_unused_) fail_unused("grad_each", "leaf", i, *leaf);
      hand_over(i);
    }
  }

 private:
  struct Waiting {
    LeafNode<T>* leaf;  // null when its gradient was handed over
    std::size_t edges = 0;
  };

  void count_edges() {
    std::vector<const Node<T>*, PoolAllocator<const Node<T>*>> next{&root_};
    while (!next.empty()) {
      const Node<T>* const node = next.back();
      next.pop_back();
      if (node->released) detail::fail_released(node->op->name);
      for (const Ref<Node<T>>& input : node->inputs()) {
        if (!input) continue;
        if (!input->is_leaf()) {
          if (nodes_.insert(input).second) next.push_back(input.get());
        } else if (const std::size_t place = nodes_.find(*input); place != nodes_.none) {
          ++waiting_[place].edges;
        }
      }
    }
  }

  void hand_over(std::size_t place) {
    LeafNode<T>& leaf = *std::exchange(waiting_[place].leaf, nullptr);
    Variable<T> gradient;
    if (detail::has_pending(leaf)) gradient = detail::unshared(detail::take_pending(leaf));
    take_(place, std::move(gradient));
  }

  const Node<T>& root_;
  bool allow_unused_;
  const GradientSink<T>& take_;
  detail::NodeSet<T> nodes_;  // the leaves come first
  std::vector<Waiting> waiting_;
};

}  // namespace

template <class T>
std::vector<Variable<T>> detail::grad_down_to(const std::vector<Variable<T>>& ends, const Variable<T>& output,
                                              const std::vector<Variable<T>>& inputs,
                                              const GradOptions<T>& options) {
  Variable<T> first = first_gradient("grad", output, options.seed, options.create_graph);
  if (inputs.empty()) fail<ValueError>("grad: inputs must not be empty");
  for (std::size_t i = 0; i < inputs.size(); ++i) {
    if (!inputs[i].requires_grad()) fail<GraphError>("grad: input ", i, " does not require a gradient");
  }
  const Ref<Node<T>> root = Access<T>::node(output);
  TowardsInputs<T> route(root, inputs, ends);
  run_along(route, root, std::move(first), options.retain_graph, options.create_graph);
  std::vector<Variable<T>> found = route.take_found();
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
  Variable<T> first = detail::first_gradient("grad_each", output, options.seed, options.create_graph);
  if (!take) detail::fail<ValueError>("grad_each: take must be a function, got none");
  if (leaves.empty()) detail::fail<ValueError>("grad_each: leaves must not be empty");
  for (std::size_t i = 0; i < leaves.size(); ++i) {
    if (leaves[i].requires_grad() && leaves[i].is_leaf()) continue;
    const std::string given = !leaves[i].defined()  ? "an undefined variable"
                              : leaves[i].is_leaf() ? "one that does not require any"
                                                    : detail::join({"the result of '", leaves[i].op(), "'"});
    detail::fail<GraphError>("grad_each: leaf ", i, " must be a leaf that requires a gradient, got ", given);
  }
  const Ref<Node<T>> root = Access<T>::node(output);
  LeafByLeaf<T> route(root, leaves, options.allow_unused, take);
  detail::run_along(route, root, std::move(first), options.retain_graph, options.create_graph);
}

#define XGRAD_INSTANTIATE(T)                                                                  \
  template std::vector<Variable<T>> detail::grad_down_to(                                     \
      const std::vector<Variable<T>>&, const Variable<T>&, const std::vector<Variable<T>>&,   \
      const GradOptions<T>&);                                                                 \
  template std::vector<Variable<T>> grad(const Variable<T>&, const std::vector<Variable<T>>&, \
                                         const GradOptions<T>&);                              \
  template void grad_each(const Variable<T>&, const std::vector<Variable<T>>&,                \
                          const std::function<void(std::size_t, Variable<T>)>&, const GradOptions<T>&);

XGRAD_INSTANTIATE(float)
XGRAD_INSTANTIATE(double)

}  // namespace xgrad
