#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

#include "../../graph/detail/leaf.hpp"
#include "../../graph/detail/node_set.hpp"
#include "../../graph/record.hpp"
#include "../../graph/variable.hpp"

// For functions that the graph keeps: the arguments of their repeated call in the backward pass, and the
// other nodes that they read.
namespace xgrad::detail {

/// A leaf with the same value.
template <class T>
Variable<T> leaf_like(const Variable<T>& x) {
  return Access<T>::make(Access<T>::value(x), Ref<Node<T>>(new LeafNode<T>(x.shape())));
}

/// The saved inputs of an op, for a repeated call of a function in its backward: recorded inputs become
/// aliases, so that gradients stop there but propagate under create_graph; others that need a gradient become
/// leaves.
template <class T>
std::vector<Variable<T>> called_again_with(const std::vector<Variable<T>>& x, Needs needs) {
  std::vector<Variable<T>> at = x;
  for (std::size_t i = 0; i < x.size(); ++i) {
    if (x[i].requires_grad()) {
      at[i] = same_elements(ops::alias, x[i].detach(), x[i]);
    } else if (needs[i]) {
      at[i] = leaf_like(x[i]);
    }
  }
  return at;
}

/// The gradients of y, from its gradient `dy`, for the first `inputs` of `ends` if needed; the pass stops at
/// all ends.
template <class T>
std::vector<Variable<T>> needed_gradients(const Variable<T>& y, const std::vector<Variable<T>>& ends,
                                          std::size_t inputs, Needs needs, const Variable<T>& dy,
                                          bool create_graph) {
  std::vector<Variable<T>> wanted, grads(inputs);
  if (!y.requires_grad()) return grads;
  for (std::size_t i = 0; i < inputs; ++i)
    if (needs[i]) wanted.push_back(ends[i]);
  std::vector<Variable<T>> found = grad_down_to(
      ends, y, wanted, GradOptions<T>{.seed = dy, .create_graph = create_graph, .allow_unused = true});
  for (std::size_t i = 0, next = 0; i < grads.size(); ++i)
    if (needs[i]) grads[i] = std::move(found[next++]);
  return grads;
}

/// The ancestors of y that are leaves or older than `start`, except those of x.
template <class T>
std::vector<Ref<Node<T>>> outer_nodes(const Variable<T>& y, const std::vector<Variable<T>>& x,
                                      std::uint64_t start) {
  NodeSet<T> inner;  // with x; without outer nodes, which other threads may use
  for (const Variable<T>& one : x)
    if (one.requires_grad()) inner.insert(Access<T>::node(one));
  std::vector<Ref<Node<T>>> outer, next{Access<T>::node(y)};
  while (!next.empty()) {
    const Ref<Node<T>> node = std::move(next.back());
    next.pop_back();
    if (inner.find(*node) != inner.none) continue;
    if (node->is_leaf() || node->order < start) {
      outer.push_back(node);
      continue;
    }
    inner.insert(node);
    for (const Ref<Node<T>>& input : node->inputs())
      if (input) next.push_back(input);
  }
  const auto before = [](const Ref<Node<T>>& a, const Ref<Node<T>>& b) { return a.get() < b.get(); };
  const auto same = [](const Ref<Node<T>>& a, const Ref<Node<T>>& b) { return a.get() == b.get(); };
  std::sort(outer.begin(), outer.end(), before);
  outer.erase(std::unique(outer.begin(), outer.end(), same), outer.end());
  return outer;
}

}  // namespace xgrad::detail
