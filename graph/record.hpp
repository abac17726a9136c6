#pragma once

// To define an op, compute y and return record(...) with its backward:
//
//   inline constexpr Op cube_op("cube", {"x"});
//
//   template <class T>
//   Variable<T> cube(const Variable<T>& x) {
//     Variable<T> y(x.value() * x.value() * x.value());
//     return record<T>(cube_op, std::move(y), Inputs(x), Saved(x),
//                      [](Variable<T> dy, Needs, Variable<T> x) -> Grads<T, 1> { return {dy * 3 * x * x}; });
//   }

#include "attributes.hpp"
#include "detail/op_node.hpp"

namespace xgrad {

/// Result of a backward: a gradient for each input, undefined if it is not needed or zero.
template <class T, std::size_t N>
using Grads = std::array<Variable<T>, N>;

/// The differentiable inputs, in the order of their gradients.
template <class... V>
struct Inputs {
  explicit Inputs(const V&... inputs) : variables(inputs...) {}
  std::tuple<const V&...> variables;
};

/// True if an op on these inputs will be recorded: otherwise it need not save anything for its backward.
template <class... V>
bool will_record(const V&... inputs) {
  return grad_enabled() && (inputs.requires_grad() || ...);
}

/// `v` if `input` requires a gradient, else an undefined Variable: for values that only the gradient of that
/// input reads.
template <class T>
const Variable<T>& if_requires_grad(const Variable<T>& input, const Variable<T>& v) {
  static constinit const Variable<T> undefined = Variable<T>();  // GCC 14 refuses {}
  return input.requires_grad() ? v : undefined;
}

namespace detail {

/// Empty if the variable requires no gradient.
template <class T>
Ref<Node<T>> node_to_record(const Variable<T>& v) {
  return v.requires_grad() ? Access<T>::node(v) : Ref<Node<T>>();
}

template <class T, class... V>
std::array<Ref<Node<T>>, sizeof...(V)> nodes_of(const Inputs<V...>& inputs) {
  return std::apply(
      [](const auto&... input) { return std::array<Ref<Node<T>>, sizeof...(V)>{node_to_record(input)...}; },
      inputs.variables);
}

template <class T, class... V, class... A>
[[gnu::cold, gnu::noinline]] void notify_op(const OpInfo& op, std::span<const Variable<T>> ys,
                                            const Inputs<V...>& inputs, const Attributes<A...>& attributes) {
  const auto pointers =
      std::apply([](const auto&... input) { return std::array<const Variable<T>*, sizeof...(V)>{&input...}; },
                 inputs.variables);
  notify_op<T, A...>(op, ys, pointers, attributes);
}

/// record() for the M results of an op.
template <std::size_t M, class T, class... V, class... A, class... S, class F>
void record_results(const OpInfo& op, Variable<T>* ys, const Inputs<V...>& inputs,
                    const Attributes<A...>& attributes, const Saved<S...>& saved, F&& backward) {
  if (std::apply(will_record<V...>, inputs.variables))
    add_node<M>(op, ys, nodes_of<T>(inputs), std::forward<F>(backward), saved);
  if (is_watched()) [[unlikely]]
    notify_op<T>(op, {ys, M}, inputs, attributes);
}

}  // namespace detail

/// Adds `y`, a result computed from `inputs`, to the graph if recording is enabled and an input requires a
/// gradient.
///
/// `backward(dy, needs, saved...)` takes the gradient of y, which inputs need a gradient, and the values of
/// `saved`, and returns Grads<T, N>: a gradient of each input's shape. Its arguments are Variables: composed
/// of the library's ops, the gradient is itself differentiable. It must capture sizes and plain arrays only,
/// never a Variable. `op` describes the op; `attributes` are for watchers.
template <class T, class... V, class... A, class... S, class F>
Variable<T> record(StaticOp<sizeof...(V), sizeof...(A)> op, Variable<T>&& y, const Inputs<V...>& inputs,
                   const Attributes<A...>& attributes, const Saved<S...>& saved, F&& backward) {
  detail::record_results<1>(op.info(), &y, inputs, attributes, saved, std::forward<F>(backward));
  return std::move(y);
}

template <class T, class... V, class... S, class F>
Variable<T> record(StaticOp<sizeof...(V), 0> op, Variable<T>&& y, const Inputs<V...>& inputs,
                   const Saved<S...>& saved, F&& backward) {
  return record<T>(op, std::move(y), inputs, Attributes(), saved, std::forward<F>(backward));
}

namespace ops {

/// x with a new node.
inline constexpr Op alias("alias", {"x"});

}  // namespace ops

namespace detail {

/// y, which has the elements of x, with a new node.
template <class T, class... A>
Variable<T> same_elements(StaticOp<1, sizeof...(A)> op, Variable<T>&& y, const Variable<T>& x,
                          const Attributes<A...>& attributes = Attributes<>()) {
  return record<T>(op, std::move(y), Inputs(x), attributes, Saved(),
                   [](Variable<T> dy, Needs) -> Grads<T, 1> { return {std::move(dy)}; });
}

}  // namespace detail
}  // namespace xgrad
