#pragma once

// Ops that are one kernel where single ops would do, too.

#include "kernel_backward.hpp"

namespace xgrad {
namespace detail {

/// The gradients of a fused op, differentiable: `composed` is computed again on its inputs and differentiated
/// with its backward recorded.
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
      // a node of its own, so that inputs are independent of each other
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

/// record() for an op that is one kernel where single ops would do, too. `backward(dy, needs, inputs...,
/// saved...)` is the kernel of its gradients. `composed(inputs...)` is the op made of single ops: when the
/// backward is recorded itself, it is computed again and differentiated instead, so that the op has
/// derivatives of any order without formulas of its own. An optional input that is missing is an undefined
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
