#pragma once

// Fused ops: one kernel in place of several single ops.

#include "kernel_backward.hpp"
#include "record_many.hpp"

namespace xgrad {
namespace detail {

/// What grad() starts from, for a result with this gradient.
template <class T>
struct Root {
  Variable<T> output, seed;
};

template <class T>
Root<T> root_of(const Variable<T>& y, const Variable<T>& dy) {
  return {y, dy};
}

/// For several results, whose gradients may be undefined: a scalar that passes each its own.
template <class T, std::size_t M>
Root<T> root_of(const std::array<Variable<T>, M>& ys, const std::array<Variable<T>, M>& dys) {
  static constexpr Op results("results", {"y"});
  std::vector<Variable<T>> used, seeds;
  for (std::size_t i = 0; i < M; ++i) {
    if (!dys[i].defined()) continue;
    used.push_back(ys[i]);
    seeds.push_back(dys[i]);
  }
  return {
      record_list<T>(results, Variable<T>(0), used, Attributes(), Saved(seeds),
                     [](const Variable<T>&, Needs, const std::vector<Variable<T>>& saved) { return saved; }),
      Variable<T>(1)};
}

/// Differentiable gradients of a fused op: recomputes `composed` on its inputs and differentiates it with its
/// backward recorded.
template <class T, std::size_t N, class Composed>
struct Replay {
  /// dy is a gradient, or an array of those of several results.
  template <class Dy, class... Operands>
  Grads<T, N> operator()(const Dy& dy, Needs needs, const Operands&... inputs_and_saved) const {
    return [&]<std::size_t... I>(const auto& all, std::index_sequence<I...>) {
      return gradients(dy, needs, {std::get<I>(all)...});
    }
    (std::tie(inputs_and_saved...), std::make_index_sequence<N>());
  }

  template <class Dy>
  Grads<T, N> gradients(const Dy& dy, Needs needs, std::array<Variable<T>, N> inputs) const {
    std::vector<Variable<T>> wanted;
    for (std::size_t i = 0; i < N; ++i) {
      if (!needs[i]) continue;
      // a separate node, so that inputs are independent of each other
      inputs[i] = same_elements(ops::alias, inputs[i].detach(), inputs[i]);
      wanted.push_back(inputs[i]);
    }
    const Root<T> root = root_of<T>(std::apply(composed, inputs), dy);
    Grads<T, N> grads;
    if (!root.output.requires_grad()) return grads;  // a result that none of the wanted inputs changes
    std::vector<Variable<T>> found =
        grad(root.output, wanted, {.seed = root.seed, .create_graph = true, .allow_unused = true});
    for (std::size_t i = 0, k = 0; i < N; ++i)
      if (needs[i]) grads[i] = std::move(found[k++]);
    return grads;
  }

  Composed composed;
};

template <class T, std::size_t N, class Composed>
inline constexpr bool is_by_ops<Replay<T, N, Composed>> = true;

template <class V>
const V& variable_of_input(const V& input) {
  return input;
}
template <class V>
const V& variable_of_input(const Unread<V>& input) {
  return input.variable;
}

/// The variables themselves, without what the kernel reads of them.
template <class... V>
auto variables_of(const Inputs<V...>& inputs) {
  return std::apply([](const auto&... input) { return Inputs(variable_of_input(input)...); },
                    inputs.variables);
}

/// Calls recorded(inputs, saved, backward) with what record() and record_many() take.
template <class T, class... V, class... S, class Composed, class F, class Recorded>
auto record_fused(const Inputs<V...>& inputs, const Saved<S...>& saved, Composed&& composed, F&& backward,
                  const Recorded& recorded) {
  using Replay = Replay<T, sizeof...(V), std::remove_cvref_t<Composed>>;
  return std::apply(
      [&](const auto&... thing) {
        return recorded(variables_of(inputs), Saved(thing...),
                        KernelBackward(std::forward<F>(backward), Replay{std::forward<Composed>(composed)}));
      },
      std::tuple_cat(inputs.variables, saved.things));
}

}  // namespace detail

/// record() for a fused op, one kernel in place of several single ops.
/// `backward(dy, needs, inputs..., saved...)` is the kernel of its gradients. `composed(inputs...)` is the op
/// composed of single ops: a backward that is itself recorded recomputes and differentiates it instead, so
/// the op has derivatives of any order without formulas for them. A missing optional input is an undefined
/// Variable for both. Pass Unread(x) for an input of which the kernel reads only whether it is defined.
template <class T, class... V, class... A, class... S, class Composed, class F>
Variable<T> fused(StaticOp<sizeof...(V), sizeof...(A)> op, Variable<T>&& y, const Inputs<V...>& inputs,
                  const Attributes<A...>& attributes, const Saved<S...>& saved, Composed&& composed,
                  F&& backward) {
  if (detail::is_watched() && detail::single_ops) [[unlikely]]
    return std::apply(composed, detail::variables_of(inputs).variables);
  return detail::record_fused<T>(inputs, saved, std::forward<Composed>(composed), std::forward<F>(backward),
                                 [&](const auto& variables, const auto& kept, auto&& made) {
                                   return record<T>(op, std::move(y), variables, attributes, kept,
                                                    std::move(made));
                                 });
}

/// fused() for an op with several results: `composed` returns an array of them, `backward(dys, needs,
/// inputs..., saved...)` takes an array of their gradients, undefined for an unused result.
template <class T, std::size_t M, class... V, class... A, class... S, class Composed, class F>
std::array<Variable<T>, M> fused_many(StaticOp<sizeof...(V), sizeof...(A)> op, std::array<Variable<T>, M> ys,
                                      const Inputs<V...>& inputs, const Attributes<A...>& attributes,
                                      const Saved<S...>& saved, Composed&& composed, F&& backward) {
  if (detail::is_watched() && detail::single_ops) [[unlikely]]
    return std::apply(composed, detail::variables_of(inputs).variables);
  return detail::record_fused<T>(inputs, saved, std::forward<Composed>(composed), std::forward<F>(backward),
                                 [&](const auto& variables, const auto& kept, auto&& made) {
                                   return record_many<T, M>(op, std::move(ys), variables, attributes, kept,
                                                            std::move(made));
                                 });
}

}  // namespace xgrad
