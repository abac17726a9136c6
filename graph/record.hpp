#pragma once

// What an op of one's own needs: compute y, then return record(...) with the backward beside it.
//
//   template <class T>
//   Variable<T> cube(const Variable<T>& x) {
//     Variable<T> y(x.value() * x.value() * x.value());
//     return record<T>("cube", std::move(y), on(x), save(x),
//                      [](Variable<T> dy, Needs, Variable<T> x) -> Grads<T, 1> { return {dy * 3 * x * x}; });
//   }

#include <array>
#include <optional>
#include <tuple>

#include "anomaly.hpp"
#include "variable.hpp"

namespace xgrad {

/// What a backward returns: a gradient for each input, undefined where none is needed or it is zero.
template <class T, std::size_t N>
using Grads = std::array<Variable<T>, N>;

/// Stands for the op's own result among the things to save.
struct Output {};
inline constexpr Output output{};

/// The inputs that the gradient flows to, in the order of the gradients.
template <class... V>
auto on(const V&... inputs) {
  return std::tuple<const V&...>(inputs...);
}

/// The Variables, and perhaps `output`, that the backward gets back as arguments.
template <class... V>
auto save(const V&... saved) {
  return std::tuple<const V&...>(saved...);
}

namespace detail {

template <class T>
inline constinit const Variable<T> undefined{};

}  // namespace detail

/// True if an op on these inputs will be recorded: only then need it keep anything for its backward.
template <class... V>
bool records(const V&... inputs) {
  return detail::recording && (inputs.requires_grad() || ...);
}

/// `v` if `input` requires a gradient, which is what v would be saved for; else nothing to save.
template <class T>
const Variable<T>& saved_for(const Variable<T>& input, const Variable<T>& v) {
  return input.requires_grad() ? v : detail::undefined<T>;
}

namespace detail {

[[noreturn, gnu::cold]] void fail_changed(const char* op, std::size_t position, const Shape& shape);

/// A saved Variable, together with the version of the value that was saved.
template <class T>
struct SavedVariable {
  explicit SavedVariable(const Variable<T>& v)
      : value(Access<T>::value(v)), node(Access<T>::node(v)), version(value ? value->version : 0) {}

  Variable<T> load(const Node<T>& owner, std::size_t position) const {
    if (!value) return {};
    if (value->version != version) [[unlikely]]
      fail_changed(owner.op, position, value->array.shape());
    return Access<T>::make(value, recording ? node : Ref<Node<T>>());
  }

  Ref<Value<T>> value;
  Ref<Node<T>> node;
  std::uint32_t version;
};

/// The saved result of the op: its value alone, for keeping the Variable would be a cycle.
template <class T>
struct SavedOutput {
  explicit SavedOutput(const Ref<Value<T>>& result) : value(result), version(result->version) {}

  Variable<T> load(Node<T>& owner, std::size_t position) const {
    if (value->version != version) [[unlikely]]
      fail_changed(owner.op, position, value->array.shape());
    return Access<T>::make(value, recording ? Ref<Node<T>>(&owner) : Ref<Node<T>>());
  }

  Ref<Value<T>> value;
  std::uint32_t version;
};

template <class T, class S>
auto make_saved(const Ref<Value<T>>& result, const S& saved) {
  if constexpr (std::is_same_v<S, Output>) {
    return SavedOutput<T>(result);
  } else {
    static_cast<void>(result);
    return SavedVariable<T>(saved);
  }
}

template <class T, class S>
using Saved = std::conditional_t<std::is_same_v<S, Output>, SavedOutput<T>, SavedVariable<T>>;

/// The node of an op with N inputs; F is the op's lambda, stored by its own type: one allocation, no type
/// erasure.
template <class T, std::size_t N, class F, class... S>
class OpNode final : public Node<T> {
 public:
  OpNode(const char* op, std::uint64_t order, const Ref<Value<T>>& result,
         std::array<Ref<Node<T>>, N>&& edges, F&& backward, const S&... saved)
      : Node<T>(op, order, result->array.shape()),
        inputs_(std::move(edges)),
        state_(std::in_place, std::move(backward), make_saved<T>(result, saved)...) {}

  std::span<const Ref<Node<T>>> inputs() const noexcept override { return inputs_; }

  void differentiate(Variable<T>&& dy, Needs needs, Variable<T>* grads) override {
    call(std::move(dy), needs, grads, std::index_sequence_for<S...>());
  }

  void release() noexcept override {
    state_.reset();
    for (Ref<Node<T>>& input : inputs_) input = {};
  }

 private:
  template <std::size_t... I>
  void call(Variable<T>&& dy, Needs needs, Variable<T>* grads, std::index_sequence<I...>) {
    Grads<T, N> result =
        std::get<0>(*state_)(std::move(dy), needs, std::get<I + 1>(*state_).load(*this, I)...);
    for (std::size_t i = 0; i < N; ++i) grads[i] = std::move(result[i]);
  }

  std::array<Ref<Node<T>>, N> inputs_;
  std::optional<std::tuple<F, Saved<T, S>...>> state_;
};

/// The node of an op with any number of inputs, which saves nothing.
template <class T, class F>
class ListNode final : public Node<T> {
 public:
  ListNode(const char* op, std::uint64_t order, const Shape& shape, std::vector<Ref<Node<T>>>&& edges,
           F&& backward)
      : Node<T>(op, order, shape), inputs_(std::move(edges)), backward_(std::move(backward)) {}

  std::span<const Ref<Node<T>>> inputs() const noexcept override { return inputs_; }

  void differentiate(Variable<T>&& dy, Needs needs, Variable<T>* grads) override {
    std::vector<Variable<T>> result = (*backward_)(std::move(dy), needs);
    if (result.size() != inputs_.size()) [[unlikely]] {
      fail<ValueError>("backward: '", this->op, "' must return ", inputs_.size(), " gradients, got ",
                       result.size());
    }
    for (std::size_t i = 0; i < inputs_.size(); ++i) grads[i] = std::move(result[i]);
  }

  void release() noexcept override {
    backward_.reset();
    inputs_.clear();
  }

 private:
  std::vector<Ref<Node<T>>> inputs_;
  std::optional<F> backward_;
};

/// Under DetectAnomaly, throws AnomalyError if y holds a nan.
template <class T, class... Inputs>
void inspect(const char* op, const Variable<T>& y, const std::tuple<Inputs...>& inputs) {
  if (!detecting_anomaly) [[likely]]
    return;
  const auto pointers = std::apply(
      [](const auto&... input) { return std::array<const Variable<T>*, sizeof...(Inputs)>{&input...}; },
      inputs);
  check_result<T>(op, y, pointers);
}

}  // namespace detail

/// `y` as record() returns it where !records(inputs): for an op that would copy arrays into its backward.
template <class T, class... Inputs>
Variable<T> unrecorded(const char* op, Variable<T>&& y, std::tuple<Inputs...> inputs) {
  detail::inspect(op, y, inputs);
  return std::move(y);
}

/// Makes `y`, a result computed from `inputs`, part of the graph if one is recorded and an input requires a
/// gradient.
///
/// `backward(dy, needs, saved...)` gets the gradient of y, which inputs need one, and what `saved` named, and
/// returns Grads<T, N>, a gradient of each input's shape. It is called with Variables: made of the library's
/// ops, the gradient can itself be differentiated. It must capture sizes and plain arrays only, never a
/// Variable.
template <class T, class... Inputs, class... S, class F>
Variable<T> record(const char* op, Variable<T>&& y, std::tuple<Inputs...> inputs, std::tuple<S...> saved,
                   F backward) {
  using detail::Access, detail::Node, detail::Ref;
  constexpr std::size_t N = sizeof...(Inputs);
  detail::inspect(op, y, inputs);
  if (!std::apply(records<std::remove_cvref_t<Inputs>...>, inputs)) return std::move(y);
  std::array<Ref<Node<T>>, N> edges = std::apply(
      [](const auto&... input) { return std::array<Ref<Node<T>>, N>{Access<T>::node(input)...}; }, inputs);
  std::uint64_t order = 0;
  for (const Ref<Node<T>>& edge : edges) order = edge && edge->order > order ? edge->order : order;
  order = detail::next_order(order);
  Ref<Node<T>> node = std::apply(
      [&](const auto&... one) {
        using Made = detail::OpNode<T, N, F, std::remove_cvref_t<decltype(one)>...>;
        return Ref<Node<T>>(
            new Made(op, order, Access<T>::value(y), std::move(edges), std::move(backward), one...));
      },
      saved);
  return Access<T>::make(std::move(Access<T>::value(y)), std::move(node));
}

/// record() for an op with any number of inputs that saves nothing; `backward(dy, needs)` returns a vector of
/// gradients.
template <class T, class F>
Variable<T> record_list(const char* op, Variable<T>&& y, const std::vector<Variable<T>>& inputs, F backward) {
  using detail::Access, detail::Node, detail::Ref;
  if (detail::detecting_anomaly) [[unlikely]] {
    std::vector<const Variable<T>*> pointers;
    for (const Variable<T>& input : inputs) pointers.push_back(&input);
    detail::check_result<T>(op, y, pointers);
  }
  std::uint64_t order = 0;
  bool wanted = false;
  for (const Variable<T>& input : inputs) {
    const Node<T>* node = Access<T>::node(input).get();
    if (node == nullptr) continue;
    wanted = true;
    order = node->order > order ? node->order : order;
  }
  if (!wanted || !detail::recording) return std::move(y);
  std::vector<Ref<Node<T>>> edges;
  edges.reserve(inputs.size());
  for (const Variable<T>& input : inputs) edges.push_back(Access<T>::node(input));
  using Made = detail::ListNode<T, F>;
  Ref<Node<T>> node(
      new Made(op, detail::next_order(order), y.shape(), std::move(edges), std::move(backward)));
  return Access<T>::make(std::move(Access<T>::value(y)), std::move(node));
}

namespace detail {

/// x itself under a node of its own.
template <class T>
Variable<T> alias(const Variable<T>& x) {
  return record<T>("alias", Access<T>::make(Access<T>::value(x), {}), on(x), save(),
                   [](Variable<T> dy, Needs) -> Grads<T, 1> { return {std::move(dy)}; });
}

}  // namespace detail

/// The gradients of a fused op, differentiable: the op's composed form is computed again on `inputs` and
/// differentiated with its backward recorded. Not to be called unless grad_enabled().
template <class T, std::size_t N, class Composed>
Grads<T, N> replay(const Variable<T>& dy, Needs needs, std::array<Variable<T>, N> inputs,
                   Composed&& composed) {
  std::vector<Variable<T>> wanted;
  for (std::size_t i = 0; i < N; ++i) {
    if (!needs[i]) continue;
    inputs[i] = detail::alias(inputs[i]);  // a node of its own, so that inputs are independent of each other
    wanted.push_back(inputs[i]);
  }
  const Variable<T> y = std::apply(composed, inputs);
  std::vector<Variable<T>> found = grad(y, wanted, {.seed = dy, .create_graph = true, .allow_unused = true});
  Grads<T, N> grads;
  for (std::size_t i = 0, k = 0; i < N; ++i) {
    if (needs[i]) grads[i] = std::move(found[k++]);
  }
  return grads;
}

}  // namespace xgrad
