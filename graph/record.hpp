#pragma once

// What an op of one's own needs: compute y, then return record(...) with the backward beside it.
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
#include "op_node.hpp"

namespace xgrad {

/// What a backward returns: a gradient for each input, undefined where none is needed or it is zero.
template <class T, std::size_t N>
using Grads = std::array<Variable<T>, N>;

/// The Variables that gradients flow to, in the order of the gradients.
template <class... V>
struct Inputs {
  explicit Inputs(const V&... inputs) : variables(inputs...) {}
  std::tuple<const V&...> variables;
};

/// True if an op on these inputs will be recorded: only then need it keep anything for its backward.
template <class... V>
bool will_record(const V&... inputs) {
  return grad_enabled() && (inputs.requires_grad() || ...);
}

/// `v` if `input` requires a gradient, else an undefined Variable: for what only the gradient of that input
/// reads.
template <class T>
const Variable<T>& if_requires_grad(const Variable<T>& input, const Variable<T>& v) {
  static constinit const Variable<T> undefined = Variable<T>();  // GCC 14 refuses {}
  return input.requires_grad() ? v : undefined;
}

namespace detail {

template <class T, class... V>
std::array<Ref<Node<T>>, sizeof...(V)> nodes_of(const Inputs<V...>& inputs) {
  return std::apply(
      [](const auto&... input) { return std::array<Ref<Node<T>>, sizeof...(V)>{Access<T>::node(input)...}; },
      inputs.variables);
}

template <class T, class... V, class... A>
[[gnu::cold, gnu::noinline]] void tell_op(const OpInfo& op, std::span<const Variable<T>> ys,
                                          const Inputs<V...>& inputs, const Attributes<A...>& attributes) {
  const auto pointers =
      std::apply([](const auto&... input) { return std::array<const Variable<T>*, sizeof...(V)>{&input...}; },
                 inputs.variables);
  tell_op<T, A...>(op, ys, pointers, attributes);
}

/// An op has no more inputs than its description names; those at the end may be missing. It has all
/// attributes or none.
template <class O, std::size_t inputs, std::size_t attributes>
inline constexpr bool describes = inputs <= O::input_count &&
                                  (attributes == 0 || attributes == O::attribute_count);

}  // namespace detail

/// Makes `y`, a result computed from `inputs`, part of the graph if one is recorded and an input requires a
/// gradient.
///
/// `backward(dy, needs, saved...)` gets the gradient of y, which inputs need one, and what `saved` named, and
/// returns Grads<T, N>, a gradient of each input's shape. It is called with Variables: made of the library's
/// ops, the gradient can itself be differentiated. It must capture sizes and plain arrays only, never a
/// Variable. `op` describes the op, and `attributes` are for those who watch.
template <class T, detail::Described O, class... V, class... A, class... S, class F>
Variable<T> record(O& op, Variable<T>&& y, const Inputs<V...>& inputs, const Attributes<A...>& attributes,
                   const Saved<S...>& saved, F&& backward) {
  static_assert(detail::describes<O, sizeof...(V), sizeof...(A)>,
                "op describes at least as many inputs, and exactly the attributes");
  if (std::apply(will_record<V...>, inputs.variables))
    detail::add_node<1>(op, &y, detail::nodes_of<T>(inputs), std::forward<F>(backward), saved);
  if (detail::is_watched()) [[unlikely]]
    detail::tell_op<T>(op, {&y, 1}, inputs, attributes);
  return std::move(y);
}

template <class T, detail::Described O, class... V, class... S, class F>
Variable<T> record(O& op, Variable<T>&& y, const Inputs<V...>& inputs, const Saved<S...>& saved,
                   F&& backward) {
  return record<T>(op, std::move(y), inputs, Attributes(), saved, std::forward<F>(backward));
}

/// record() for an op with several results, such as a matrix's eigenvalues and eigenvectors:
/// `backward(dys, needs, saved...)` gets an array of their gradients, undefined for a result that nothing
/// depends on. Output(i) is the result i.
template <class T, std::size_t M, detail::Described O, class... V, class... A, class... S, class F>
std::array<Variable<T>, M> record_many(O& op, std::array<Variable<T>, M> ys, const Inputs<V...>& inputs,
                                       const Attributes<A...>& attributes, const Saved<S...>& saved,
                                       F&& backward) {
  static_assert(M >= 2 && M < 256);
  static_assert(detail::describes<O, sizeof...(V), sizeof...(A)>,
                "op describes at least as many inputs, and exactly the attributes");
  if (std::apply(will_record<V...>, inputs.variables))
    detail::add_node<M>(op, ys.data(), detail::nodes_of<T>(inputs), std::forward<F>(backward), saved);
  if (detail::is_watched()) [[unlikely]]
    detail::tell_op<T>(op, ys, inputs, attributes);
  return ys;
}

/// record() for an op with any number of inputs, which its description has one name for; `backward(dy, needs,
/// saved...)` returns a vector of gradients.
template <class T, detail::Described O, class... A, class... S, class F>
Variable<T> record_list(O& op, Variable<T>&& y, const std::vector<Variable<T>>& inputs,
                        const Attributes<A...>& attributes, const Saved<S...>& saved, F&& backward) {
  static_assert(detail::describes<O, 1, sizeof...(A)>, "op describes exactly the attributes");
  Variable<T> result = std::move(y);
  const auto requires_grad = [](const Variable<T>& input) { return input.requires_grad(); };
  if (grad_enabled() && std::any_of(inputs.begin(), inputs.end(), requires_grad)) {
    std::vector<detail::Ref<detail::Node<T>>> nodes;
    nodes.reserve(inputs.size());
    for (const Variable<T>& input : inputs) nodes.push_back(detail::Access<T>::node(input));
    detail::add_node<1>(op, &result, std::move(nodes), std::forward<F>(backward), saved);
  }
  if (detail::is_watched()) [[unlikely]] {
    std::vector<const Variable<T>*> pointers;
    for (const Variable<T>& input : inputs) pointers.push_back(&input);
    detail::tell_op<T, A...>(op, {&result, 1}, pointers, attributes);
  }
  return result;
}

template <class T, detail::Described O, class... A, class F>
Variable<T> record_list(O& op, Variable<T>&& y, const std::vector<Variable<T>>& inputs,
                        const Attributes<A...>& attributes, F&& backward) {
  return record_list<T>(op, std::move(y), inputs, attributes, Saved(), std::forward<F>(backward));
}

template <class T, detail::Described O, class F>
Variable<T> record_list(O& op, Variable<T>&& y, const std::vector<Variable<T>>& inputs, F&& backward) {
  return record_list<T>(op, std::move(y), inputs, Attributes(), Saved(), std::forward<F>(backward));
}

/// A backward that computes on plain arrays: its gradients cannot be differentiated, and an attempt to do so
/// throws GraphError. Made by once().
template <class F>
struct Once {
  template <class V, class... S>
  auto operator()(V&& dy, Needs needs, S&&... saved) const {
    return backward(std::forward<V>(dy), needs, std::forward<S>(saved)...);
  }

  F backward;
};

template <class F>
inline constexpr bool detail::is_once<Once<F>> = true;

/// Marks the backward of record() as one that is not made of ops: without it, a second derivative through
/// `backward` would miss what the arrays hide. Gradients under create_graph are computed as always; only to
/// differentiate them throws GraphError.
/// https://pytorch.org/docs/stable/generated/torch.autograd.function.once_differentiable.html
template <class F>
Once<std::remove_cvref_t<F>> once(F&& backward) {
  return {std::forward<F>(backward)};
}

/// A backward in two forms that give the same gradients: `kernel` computes them on plain arrays, `composed`
/// of ops. The latter is taken when the backward is recorded itself, for gradients of gradients.
template <class Kernel, class Composed>
struct KernelBackward {
  KernelBackward(Kernel k, Composed c) : kernel(std::move(k)), composed(std::move(c)) {}

  template <class V, class... S>
  auto operator()(V&& dy, Needs needs, S&&... saved) const {
    if (grad_enabled()) [[unlikely]]
      return composed(std::forward<V>(dy), needs, std::forward<S>(saved)...);
    return kernel(std::forward<V>(dy), needs, std::forward<S>(saved)...);
  }

  Kernel kernel;
  Composed composed;
};

namespace ops {

/// x itself, as a node of its own.
inline constexpr Op alias("alias", {"x"});

}  // namespace ops

namespace detail {

/// y, which has the elements of x, under a node of its own.
template <class T, Described O, class... A>
Variable<T> same_elements(O& op, Variable<T>&& y, const Variable<T>& x,
                          const Attributes<A...>& attributes = Attributes<>()) {
  return record<T>(op, std::move(y), Inputs(x), attributes, Saved(),
                   [](Variable<T> dy, Needs) -> Grads<T, 1> { return {std::move(dy)}; });
}

}  // namespace detail
}  // namespace xgrad
