#include <algorithm>
#include <string>

#include "detail/node_set.hpp"
#include "detail/pass.hpp"

namespace xgrad {
namespace {

using detail::Access, detail::LeafNode, detail::Node, detail::Ref;

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

}  // namespace

void detail::fail_unused(const char* what, const char* kind, std::size_t i, const Shape& shape) {
  fail<GraphError>(what, ": the output does not depend on ", kind, " ", i, " ", shape,
                   "; pass allow_unused to get an undefined gradient for it");
}

template <class T>
std::vector<Variable<T>> detail::grad_down_to(const std::vector<Variable<T>>& ends, const Variable<T>& output,
                                              const std::vector<Variable<T>>& inputs,
                                              const GradOptions<T>& options) {
  Variable<T> first = first_gradient("grad", output, options.seed, options.create_graph);
  if (inputs.empty()) fail<ValueError>("grad: inputs must not be empty");
  for (std::size_t i = 0; i < inputs.size(); ++i) {
    if (!inputs[i].requires_grad())
      fail<GraphError>("grad: input ", i, " does not require a gradient, or is frozen");
  }
  const Ref<Node<T>> root = Access<T>::node(output);
  TowardsInputs<T> route(root, inputs, ends);
  run_along(route, root, std::move(first), options.retain_graph, options.create_graph);
  std::vector<Variable<T>> found = route.take_found();
  for (std::size_t i = 0; i < found.size(); ++i) {
    if (!found[i].defined() && !options.allow_unused)
      fail_unused("grad", "input", i, Access<T>::node(inputs[i])->shape);
  }
  return found;
}

template <class T>
std::vector<Variable<T>> grad(const Variable<T>& output, const std::vector<Variable<T>>& inputs,
                              const GradOptions<std::type_identity_t<T>>& options) {
  return detail::grad_down_to({}, output, inputs, options);
}

#define XGRAD_INSTANTIATE(T)                                                                  \
  template std::vector<Variable<T>> detail::grad_down_to(                                     \
      const std::vector<Variable<T>>&, const Variable<T>&, const std::vector<Variable<T>>&,   \
      const GradOptions<T>&);                                                                 \
  template std::vector<Variable<T>> grad(const Variable<T>&, const std::vector<Variable<T>>&, \
                                         const GradOptions<T>&);

XGRAD_INSTANTIATE(float)
XGRAD_INSTANTIATE(double)

}  // namespace xgrad
