#include "grad_each.hpp"

#include "../graph/detail/node_set.hpp"
#include "../graph/detail/pass.hpp"

namespace xgrad {
namespace {

using detail::Access, detail::LeafNode, detail::Node, detail::Ref;

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
      if (is_unused(waiting_[i])) detail::fail_unused("grad_each", "leaf", i, waiting_[i].leaf->shape);
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
      if (!detail::has_pending(*leaf) && !allow_unused_)
        detail::fail_unused("grad_each", "leaf", i, leaf->shape);
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
void grad_each(const Variable<T>& output, const std::vector<Variable<T>>& leaves,
               const std::function<void(std::size_t, Variable<std::type_identity_t<T>>)>& take,
               const GradOptions<std::type_identity_t<T>>& options) {
  Variable<T> first = detail::first_gradient("grad_each", output, options.seed, options.create_graph);
  if (!take) detail::fail<ValueError>("grad_each: take must be a function, got none");
  if (leaves.empty()) detail::fail<ValueError>("grad_each: leaves must not be empty");
  for (std::size_t i = 0; i < leaves.size(); ++i) {
    if (leaves[i].requires_grad() && leaves[i].is_leaf()) continue;
    const std::string given = !leaves[i].defined()  ? "an undefined variable"
                              : leaves[i].is_leaf() ? "one that does not require any, or is frozen"
                                                    : detail::join({"the result of '", leaves[i].op(), "'"});
    detail::fail<GraphError>("grad_each: leaf ", i, " must be a leaf that requires a gradient, got ", given);
  }
  const Ref<Node<T>> root = Access<T>::node(output);
  LeafByLeaf<T> route(root, leaves, options.allow_unused, take);
  detail::run_along(route, root, std::move(first), options.retain_graph, options.create_graph);
}

#define XGRAD_INSTANTIATE(T)                                                   \
  template void grad_each(const Variable<T>&, const std::vector<Variable<T>>&, \
                          const std::function<void(std::size_t, Variable<T>)>&, const GradOptions<T>&);

XGRAD_INSTANTIATE(float)
XGRAD_INSTANTIATE(double)

}  // namespace xgrad
