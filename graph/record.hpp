#pragma once

// What an op of one's own needs: compute y, then return record(...) with the backward beside it.
//
//   template <class T>
//   Variable<T> cube(const Variable<T>& x) {
//     Variable<T> y(x.value() * x.value() * x.value());
//     return record<T>("cube", std::move(y), Inputs(x), Saved(x),
//                      [](Variable<T> dy, Needs, Variable<T> x) -> Grads<T, 1> { return {dy * 3 * x * x}; });
//   }

#include <array>
#include <concepts>
#include <optional>
#include <tuple>

#include "variable.hpp"
#include "watch.hpp"

namespace xgrad {

/// What a backward returns: a gradient for each input, undefined where none is needed or it is zero.
template <class T, std::size_t N>
using Grads = std::array<Variable<T>, N>;

/// Saves the result of the op itself: Saved(x, Output()).
struct Output {};

/// Saves a Variable whose value the backward reads only when it is recorded itself: until then the value may
/// change in place.
template <class V>
struct Unread {
  explicit Unread(const V& saved) : variable(saved) {}
  const V& variable;
};

/// The Variables that gradients flow to, in the order of the gradients.
template <class... V>
struct Inputs {
  explicit Inputs(const V&... inputs) : variables(inputs...) {}
  std::tuple<const V&...> variables;
};

/// What the backward gets back as arguments, in this order: Variables, Output(), Unread(v), and anything
/// else, such as ids and masks, which is copied if the op is recorded.
template <class... S>
struct Saved {
  explicit Saved(const S&... saved) : things(saved...) {}
  std::tuple<const S&...> things;
};

/// The arguments of an op that are no Variables, for those who watch: Attributes("axis", axis, "eps", eps).
/// Numbers, strings, shapes, axes, arrays of numbers, ids and masks; an empty optional, a null pointer and an
/// empty array of numbers are left out.
template <class... A>
struct Attributes {
  static_assert(sizeof...(A) % 2 == 0, "Attributes are names and values in turn");

  explicit Attributes(const A&... names_and_values) : items(names_and_values...) {}
  std::tuple<const A&...> items;
};

namespace detail {

template <class T>
inline constinit const Variable<T> undefined = Variable<T>();  // GCC 14 refuses {}

template <class V>
inline constexpr bool is_optional = false;
template <class V>
inline constexpr bool is_optional<std::optional<V>> = true;

template <class A>
void add_attribute(AttributeList& list, const char* name, const A& value) {
  if constexpr (is_optional<A>) {
    if (value) add_attribute(list, name, *value);
  } else if constexpr (std::is_same_v<A, bool>) {
    list.add(name, value);
  } else if constexpr (std::integral<A>) {
    list.add(name, static_cast<std::int64_t>(value));
  } else if constexpr (std::floating_point<A>) {
    list.add(name, static_cast<double>(value));
  } else if constexpr (std::convertible_to<const A&, std::string_view>) {
    list.add(name, std::string_view(value));
  } else if constexpr (std::same_as<A, Ids> || std::same_as<A, Mask>) {
    list.add(name, &value);
  } else if constexpr (std::is_pointer_v<A>) {
    if (value != nullptr) list.add(name, value);
  } else if constexpr (std::floating_point<std::remove_cvref_t<decltype(*value.begin())>>) {
    if (value.size() > 0) list.add(name, std::vector<double>(value.begin(), value.end()));
  } else {
    list.add(name, std::vector<std::int64_t>(value.begin(), value.end()));
  }
}

inline void add_attributes(AttributeList&) {}
template <class A, class... Rest>
void add_attributes(AttributeList& list, const char* name, const A& value, const Rest&... rest) {
  add_attribute(list, name, value);
  add_attributes(list, rest...);
}

/// Tells those who watch of a result; kept apart from record(), which nobody may be watching.
template <class T, class... A>
[[gnu::cold, gnu::noinline]] void tell_op(const char* op, const Variable<T>& y,
                                          std::span<const Variable<T>* const> inputs,
                                          const Attributes<A...>& attributes) {
  AttributeList list;
  std::apply([&](const auto&... items) { add_attributes(list, items...); }, attributes.items);
  tell_op<T>(op, inputs, y, list.attributes());
}
template <class T, class... V, class... A>
[[gnu::cold, gnu::noinline]] void tell_op(const char* op, const Variable<T>& y, const Inputs<V...>& inputs,
                                          const Attributes<A...>& attributes) {
  const auto pointers =
      std::apply([](const auto&... input) { return std::array<const Variable<T>*, sizeof...(V)>{&input...}; },
                 inputs.variables);
  tell_op<T, A...>(op, y, pointers, attributes);
}

}  // namespace detail

/// True if an op on these inputs will be recorded: only then need it keep anything for its backward.
template <class... V>
bool will_record(const V&... inputs) {
  return grad_enabled() && (inputs.requires_grad() || ...);
}

/// `v` if `input` requires a gradient, else nothing: for what only the gradient of that input reads.
template <class T>
const Variable<T>& if_requires_grad(const Variable<T>& input, const Variable<T>& v) {
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

/// A saved Variable that is read, and so checked, only when the backward is recorded.
template <class T>
struct SavedUnread {
  explicit SavedUnread(const Variable<T>& v) : saved(v) {}

  Variable<T> load(const Node<T>& owner, std::size_t position) const {
    if (recording) return saved.load(owner, position);
    return Access<T>::make(saved.value, {});
  }

  SavedVariable<T> saved;
};

/// Anything else, an array or a struct.
template <class S>
struct SavedCopy {
  explicit SavedCopy(const S& copied) : copy(copied) {}

  template <class T>
  const S& load(const Node<T>&, std::size_t) const {
    return copy;
  }

  S copy;
};

template <class T, class S>
struct SavedAs {
  using type = SavedCopy<S>;
};
template <class T>
struct SavedAs<T, Variable<T>> {
  using type = SavedVariable<T>;
};
template <class T>
struct SavedAs<T, Unread<Variable<T>>> {
  using type = SavedUnread<T>;
};
template <class T>
struct SavedAs<T, Output> {
  using type = SavedOutput<T>;
};

/// What of a thing that is saved goes into the node.
template <class T, class S>
const S& stored(const Ref<Value<T>>&, const S& thing) {
  return thing;
}
template <class T>
const Variable<T>& stored(const Ref<Value<T>>&, const Unread<Variable<T>>& thing) {
  return thing.variable;
}
template <class T>
const Ref<Value<T>>& stored(const Ref<Value<T>>& result, const Output&) {
  return result;
}

/// The node of an op with N inputs; F is the op's lambda, stored by its own type: one allocation, no type
/// erasure.
template <class T, std::size_t N, class F, class... S>
class OpNode final : public Node<T> {
 public:
  OpNode(const char* name, std::uint64_t creation, const Ref<Value<T>>& result,
         std::array<Ref<Node<T>>, N>&& edges, F&& backward, const S&... saved)
      : Node<T>(name, creation, result->array.shape()),
        inputs_(std::move(edges)),
        state_(std::in_place, std::move(backward), stored<T>(result, saved)...) {}

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
  std::optional<std::tuple<F, typename SavedAs<T, S>::type...>> state_;
};

/// The node of an op with any number of inputs, which saves nothing.
template <class T, class F>
class ListNode final : public Node<T> {
 public:
  ListNode(const char* name, std::uint64_t creation, const Shape& value_shape,
           std::vector<Ref<Node<T>>>&& edges, F&& backward)
      : Node<T>(name, creation, value_shape), inputs_(std::move(edges)), backward_(std::move(backward)) {}

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

/// y as it is, of which those who watch are told.
template <class T, class... V, class... A>
Variable<T> told(const char* op, Variable<T>&& y, const Inputs<V...>& inputs,
                 const Attributes<A...>& attributes) {
  if (is_watched()) [[unlikely]]
    tell_op(op, y, inputs, attributes);
  return std::move(y);
}

}  // namespace detail

/// Makes `y`, a result computed from `inputs`, part of the graph if one is recorded and an input requires a
/// gradient.
///
/// `backward(dy, needs, saved...)` gets the gradient of y, which inputs need one, and what `saved` named, and
/// returns Grads<T, N>, a gradient of each input's shape. It is called with Variables: made of the library's
/// ops, the gradient can itself be differentiated. It must capture sizes and plain arrays only, never a
/// Variable. `attributes` are for those who watch.
template <class T, class... V, class... A, class... S, class F>
Variable<T> record(const char* op, Variable<T>&& y, const Inputs<V...>& inputs,
                   const Attributes<A...>& attributes, const Saved<S...>& saved, F&& backward) {
  using detail::Access, detail::Node, detail::Ref;
  constexpr std::size_t N = sizeof...(V);
  if (std::apply(will_record<V...>, inputs.variables)) {
    std::array<Ref<Node<T>>, N> edges = std::apply(
        [](const auto&... input) { return std::array<Ref<Node<T>>, N>{Access<T>::node(input)...}; },
        inputs.variables);
    std::uint64_t order = 0;
    for (const Ref<Node<T>>& edge : edges) order = edge && edge->order > order ? edge->order : order;
    order = detail::next_order(order);
    Access<T>::node(y) = std::apply(
        [&](const auto&... one) {
          using Made = detail::OpNode<T, N, std::remove_cvref_t<F>, std::remove_cvref_t<decltype(one)>...>;
          return Ref<Node<T>>(new Made(op, order, Access<T>::value(y), std::move(edges),
                                       std::remove_cvref_t<F>(std::forward<F>(backward)), one...));
        },
        saved.things);
  }
  return detail::told(op, std::move(y), inputs, attributes);
}

template <class T, class... V, class... S, class F>
Variable<T> record(const char* op, Variable<T>&& y, const Inputs<V...>& inputs, const Saved<S...>& saved,
                   F&& backward) {
  return record<T>(op, std::move(y), inputs, Attributes(), saved, std::forward<F>(backward));
}

/// record() for an op with any number of inputs that saves nothing; `backward(dy, needs)` returns a vector of
/// gradients.
template <class T, class... A, class F>
Variable<T> record_list(const char* op, Variable<T>&& y, const std::vector<Variable<T>>& inputs,
                        const Attributes<A...>& attributes, F backward) {
  using detail::Access, detail::Node, detail::Ref;
  Variable<T> result = std::move(y);
  std::uint64_t order = 0;
  bool wanted = false;
  for (const Variable<T>& input : inputs) {
    const Node<T>* node = Access<T>::node(input).get();
    if (node == nullptr) continue;
    wanted = true;
    order = node->order > order ? node->order : order;
  }
  if (wanted && grad_enabled()) {
    std::vector<Ref<Node<T>>> edges;
    edges.reserve(inputs.size());
    for (const Variable<T>& input : inputs) edges.push_back(Access<T>::node(input));
    using Made = detail::ListNode<T, F>;
    Access<T>::node(result) = Ref<Node<T>>(
        new Made(op, detail::next_order(order), result.shape(), std::move(edges), std::move(backward)));
  }
  if (detail::is_watched()) [[unlikely]] {
    std::vector<const Variable<T>*> pointers;
    pointers.reserve(inputs.size());
    for (const Variable<T>& input : inputs) pointers.push_back(&input);
    detail::tell_op<T, A...>(op, result, pointers, attributes);
  }
  return result;
}

template <class T, class F>
Variable<T> record_list(const char* op, Variable<T>&& y, const std::vector<Variable<T>>& inputs, F backward) {
  return record_list<T>(op, std::move(y), inputs, Attributes(), std::move(backward));
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

namespace detail {

/// y, which has the elements of x, under a node of its own.
template <class T, class... A>
Variable<T> same_elements(const char* op, Variable<T>&& y, const Variable<T>& x,
                          const Attributes<A...>& attributes = Attributes<>()) {
  return record<T>(op, std::move(y), Inputs(x), attributes, Saved(),
                   [](Variable<T> dy, Needs) -> Grads<T, 1> { return {std::move(dy)}; });
}

/// The gradients of a fused op, differentiable: the op's composed form is computed again on `inputs` and
/// differentiated with its backward recorded.
template <class T, std::size_t N, class Composed>
Grads<T, N> replay(const Variable<T>& dy, Needs needs, std::array<Variable<T>, N> inputs,
                   const Composed& composed) {
  std::vector<Variable<T>> wanted;
  for (std::size_t i = 0; i < N; ++i) {
    if (!needs[i]) continue;
    // a node of its own, so that inputs are independent of each other
    inputs[i] = same_elements("alias", inputs[i].detach(), inputs[i]);
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
/// derivatives of any order without formulas of its own. An input is Unread(x) if the kernel reads only
/// whether it is defined.
template <class T, class... V, class... A, class... S, class Composed, class F>
Variable<T> fused(const char* op, Variable<T>&& y, const Inputs<V...>& inputs,
                  const Attributes<A...>& attributes, const Saved<S...>& saved, Composed&& composed,
                  F&& backward) {
  constexpr std::size_t N = sizeof...(V);
  const Inputs variables = std::apply(
      [](const auto&... input) { return Inputs(detail::variable_of_input(input)...); }, inputs.variables);
  if (detail::is_watched() && detail::single_ops) [[unlikely]]
    return std::apply(composed, variables.variables);
  const bool recorded =
      std::apply([](const auto&... variable) { return will_record(variable...); }, variables.variables);
  if (!recorded) return detail::told(op, std::move(y), variables, attributes);
  auto replayed = [composed = std::remove_cvref_t<Composed>(std::forward<Composed>(composed))]<class... All>(
                      Variable<T> dy, Needs needs, All&&... all) {
    auto arguments = std::forward_as_tuple(all...);
    return [&]<std::size_t... I>(std::index_sequence<I...>) {
      return detail::replay<T, N>(dy, needs, {std::get<I>(arguments)...}, composed);
    }
    (std::make_index_sequence<N>());
  };
  const auto all_saved = [&](const auto&... input) {
    return std::apply([&](const auto&... thing) { return Saved(input..., thing...); }, saved.things);
  };
  return record<T>(op, std::move(y), variables, attributes, std::apply(all_saved, inputs.variables),
                   KernelBackward(std::forward<F>(backward), std::move(replayed)));
}

}  // namespace xgrad
