#pragma once

// Fused ops: one kernel in place of several single ops.

#include "kernel_backward.hpp"

namespace xgrad {
namespace detail {

/// Differentiable gradients of a fused op: recomputes `composed` on its inputs and differentiates it with its
/// backward recorded.
template <class T, std::size_t N, class Composed>
struct Replay {
  template <class... Operands>
  Grads<T, N> operator()(const Variable<T>& dy, Needs needs, const Operands&... inputs_and_saved) const {
    return [&]<std::size_t... I>(const auto& all, std::index_sequence<I...>) {
      return gradients(dy, needs, {std::get<I>(all)...});
    }
    (std::tie(inputs_and_saved...), std::make_index_sequence<N>());
  }

  Grads<T, N> gradients(const Variable<T>& dy, Needs needs, std::array<Variable<T>, N> inputs) const {
    std::vector<Variable<T>> wanted;
    for (std::size_t i = 0; i < N; ++i) {
      if (!needs[i]) continue;
      // a separate node, so that inputs are independent of each other
      inputs[i] = same_elements(ops::alias, inputs[i].detach(), inputs[i]);
      wanted.push_back(inputs[i]);
    }
    const Variable<T> y = std::apply(composed, inputs);
    std::vector<Variable<T>> found =
        grad(y, wanted, {.seed = dy, .create_graph = true, .allow_unused = true});
    Grads<T, N> grads;
    for (std::size_t i = 0, k = 0; i < N; ++i)
      if (needs[i]) grads[i] = std::move(found[k++]);
    return grads;
  }

  Composed composed;
};

template <class V>
const V& variable_of_input(const V& input) {
  return input;
}
template <class V>
const V& variable_of_input(const Unread<V>& input) {
  return input.variable;
}

}  // namespace detail

/// record() for a fused op, one kernel in place of several single ops.
/// `backward(dy, needs, inputs..., saved...)` is the kernel of its gradients. `composed(inputs...)` is the op
/// composed of single ops: a backward that is itself recorded recomputes and differentiates it instead, so
/// the op has derivatives of any order without formulas for them. A missing optional input is an undefined
/// Variable for both. Pass Unread(x) for an input of which the kernel reads only whether it is defined.
template <class T, detail::Described O, class... V, class... A, class... S, class Composed, class F>
Variable<T> fused(O& op, Variable<T>&& y, const Inputs<V...>& inputs, const Attributes<A...>& attributes,
                  const Saved<S...>& saved, Composed&& composed, F&& backward) {
  const Inputs variables = std::apply(
      [](const auto&... input) { return Inputs(detail::variable_of_input(input)...); }, inputs.variables);
  if (detail::is_watched() && detail::single_ops) [[unlikely]]
    return std::apply(composed, variables.variables);
  using Replay = detail::Replay<T, sizeof...(V), std::remove_cvref_t<Composed>>;
  return std::apply(
      [&](const auto&... thing) {
        return record<T>(op, std::move(y), variables, attributes, Saved(thing...),
                         KernelBackward(std::forward<F>(backward), Replay{std::forward<Composed>(composed)}));
      },
      std::tuple_cat(inputs.variables, saved.things));
}

}  // namespace xgrad
