#pragma once

// record() for ops with several results, or with a list of inputs.

#include "record.hpp"

namespace xgrad {

/// record() for an op with several results, such as a matrix's eigenvalues and eigenvectors:
/// `backward(dys, needs, saved...)` takes an array of their gradients, undefined for an unused result.
/// Output(i) is result i.
template <class T, std::size_t M, class... V, class... A, class... S, class F>
std::array<Variable<T>, M> record_many(StaticOp<sizeof...(V), sizeof...(A)> op, std::array<Variable<T>, M> ys,
                                       const Inputs<V...>& inputs, const Attributes<A...>& attributes,
                                       const Saved<S...>& saved, F&& backward) {
  static_assert(M >= 2 && M < 256);
  detail::record_results<M>(op.info(), ys.data(), inputs, attributes, saved, std::forward<F>(backward));
  return ys;
}

/// record() for an op with any number of inputs, which share one name in its description;
/// `backward(dy, needs, saved...)` returns a vector of gradients.
template <class T, class... A, class... S, class F>
Variable<T> record_list(StaticOp<1, sizeof...(A)> op, Variable<T>&& y, const std::vector<Variable<T>>& inputs,
                        const Attributes<A...>& attributes, const Saved<S...>& saved, F&& backward) {
  Variable<T> result = std::move(y);
  const auto requires_grad = [](const Variable<T>& input) { return input.requires_grad(); };
  if (grad_enabled() && std::any_of(inputs.begin(), inputs.end(), requires_grad)) {
    std::vector<detail::Ref<detail::Node<T>>> nodes;
    nodes.reserve(inputs.size());
    for (const Variable<T>& input : inputs) nodes.push_back(detail::node_to_record(input));
    detail::add_node<1>(op.info(), &result, std::move(nodes), std::forward<F>(backward), saved);
  }
  if (detail::is_watched()) [[unlikely]] {
    std::vector<const Variable<T>*> pointers;
    for (const Variable<T>& input : inputs) pointers.push_back(&input);
    detail::notify_op<T, A...>(op.info(), {&result, 1}, pointers, attributes);
  }
  return result;
}

template <class T, class... A, class F>
Variable<T> record_list(StaticOp<1, sizeof...(A)> op, Variable<T>&& y, const std::vector<Variable<T>>& inputs,
                        const Attributes<A...>& attributes, F&& backward) {
  return record_list<T>(op, std::move(y), inputs, attributes, Saved(), std::forward<F>(backward));
}

template <class T, class F>
Variable<T> record_list(StaticOp<1, 0> op, Variable<T>&& y, const std::vector<Variable<T>>& inputs,
                        F&& backward) {
  return record_list<T>(op, std::move(y), inputs, Attributes(), Saved(), std::forward<F>(backward));
}

}  // namespace xgrad
