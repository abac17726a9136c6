#pragma once

// What an op of one's own needs: compute y, then return record(...) with the backward beside it.
//
//   template <class T>
//   Variable<T> cube(const Variable<T>& x) {
//     Variable<T> y(x.value() * x.value() * x.value());
//     return record<T>("cube", std::move(y), Inputs(x), Saved(x),
//                      [](Variable<T> dy, Needs, Variable<T> x) -> Grads<T, 1> { return {dy * 3 * x * x}; });
//   }

#include <algorithm>
#include <array>
#include <concepts>
#include <optional>
#include <tuple>

#include "scoped_value.hpp"
#include "variable.hpp"
#include "watch.hpp"

namespace xgrad {

/// What a backward returns: a gradient for each input, undefined where none is needed or it is zero.
template <class T, std::size_t N>
using Grads = std::array<Variable<T>, N>;

/// Saves the result of the op itself: Saved(x, Output()); of several, the one at this place.
struct Output {
  explicit Output(std::size_t result = 0) : place(result) {}
  std::size_t place;
};

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

/// What the backward gets back as arguments, in this order: Variables, vectors of them, Output(), Unread(v),
/// and anything else, such as ids and masks, which is copied if the op is recorded.
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

template <class F>
struct Once;

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
                                          const Attributes<A...>& attributes, std::size_t output) {
  AttributeList list;
  std::apply([&](const auto&... items) { add_attributes(list, items...); }, attributes.items);
  tell_op<T>(op, inputs, y, list.attributes(), output);
}
template <class T, class... V, class... A>
[[gnu::cold, gnu::noinline]] void tell_op(const char* op, const Variable<T>& y, const Inputs<V...>& inputs,
                                          const Attributes<A...>& attributes, std::size_t output = 0) {
  const auto pointers =
      std::apply([](const auto&... input) { return std::array<const Variable<T>*, sizeof...(V)>{&input...}; },
                 inputs.variables);
  tell_op<T, A...>(op, y, pointers, attributes, output);
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
[[noreturn, gnu::cold]] void fail_once(const char* op);

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
  SavedOutput(const Ref<Value<T>>& result, std::size_t result_place)
      : value(result), version(result->version), place(result_place) {}

  Variable<T> load(Node<T>& owner, std::size_t position) const {
    if (value->version != version) [[unlikely]]
      fail_changed(owner.op, position, value->array.shape());
    return Access<T>::make(value, recording ? owner.result(place) : Ref<Node<T>>());
  }

  Ref<Value<T>> value;
  std::uint32_t version;
  std::size_t place;
};

/// A list of saved Variables.
template <class T>
struct SavedList {
  explicit SavedList(const std::vector<Variable<T>>& list) : variables(list.begin(), list.end()) {}

  std::vector<Variable<T>> load(const Node<T>& owner, std::size_t position) const {
    std::vector<Variable<T>> loaded;
    loaded.reserve(variables.size());
    for (const SavedVariable<T>& one : variables) loaded.push_back(one.load(owner, position));
    return loaded;
  }

  std::vector<SavedVariable<T>> variables;
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
struct SavedAs<T, std::vector<Variable<T>>> {
  using type = SavedList<T>;
};
template <class T>
struct SavedAs<T, Unread<Variable<T>>> {
  using type = SavedUnread<T>;
};
template <class T>
struct SavedAs<T, Output> {
  using type = SavedOutput<T>;
};

/// The node of a gradient that must not be differentiated.
template <class T>
struct RefusingNode final : Node<T> {
  RefusingNode(const char* name, std::uint64_t creation, const Shape& value_shape,
               std::vector<Ref<Node<T>>>&& edges)
      : Node<T>(name, creation, value_shape), inputs_(std::move(edges)) {}

  std::span<const Ref<Node<T>>> inputs() const noexcept override { return inputs_; }
  void differentiate(Variable<T>*, Needs, Variable<T>*) override { fail_once(this->op); }
  Ref<Node<T>> result(std::size_t) override { return Ref<Node<T>>(this); }
  void release() noexcept override { inputs_.clear(); }

 private:
  std::vector<Ref<Node<T>>> inputs_;
};

/// Makes the gradients that `owner` computes on arrays such that must not be differentiated.
template <class T, class Dy, class F>
auto refusing_gradients(const Node<T>& owner, const Dy& dy, const F& compute) {
  std::vector<Ref<Node<T>>> edges(owner.inputs().begin(), owner.inputs().end());
  if constexpr (is_variable<Dy>) {
    edges.push_back(Access<T>::node(dy));
  } else {
    for (const Variable<T>& one : dy) edges.push_back(Access<T>::node(one));
  }
  auto grads = [&] {
    const ScopedValue<bool> off(recording, false);
    return compute();
  }();
  std::uint64_t newest = 0;
  for (const Ref<Node<T>>& edge : edges) newest = edge && edge->order > newest ? edge->order : newest;
  for (Variable<T>& gradient : grads) {
    if (!gradient.defined()) continue;
    Access<T>::node(gradient) =
        Ref<Node<T>>(new RefusingNode<T>(owner.op, next_order(newest), gradient.shape(), std::vector(edges)));
  }
  return grads;
}

/// What of a thing that is saved goes into the node of an op with these results.
template <class T, class S>
const S& stored(const Ref<Value<T>>*, const S& thing) {
  return thing;
}
template <class T>
const Variable<T>& stored(const Ref<Value<T>>*, const Unread<Variable<T>>& thing) {
  return thing.variable;
}
template <class T>
SavedOutput<T> stored(const Ref<Value<T>>* results, const Output& thing) {
  return {results[thing.place], thing.place};
}

template <class F>
inline constexpr bool is_once = false;
template <class F>
inline constexpr bool is_once<Once<F>> = true;

/// The backward of an op and what it saved, each by its own type: no allocation, no type erasure.
template <class T, class F, class... S>
class Backward {
 public:
  Backward([[maybe_unused]] const Ref<Value<T>>* results, F&& backward, const S&... saved)
      : state_(std::in_place, std::move(backward), stored<T>(results, saved)...) {}

  /// Calls it for the node that owns this.
  template <class Dy>
  auto operator()(Node<T>& owner, Dy&& dy, Needs needs) {
    return call(owner, std::forward<Dy>(dy), needs, std::index_sequence_for<S...>());
  }

  void release() noexcept { state_.reset(); }

 private:
  template <class Dy, std::size_t... I>
  auto call(Node<T>& owner, Dy&& dy, Needs needs, std::index_sequence<I...>) {
    const auto compute = [&] {
      return std::get<0>(*state_)(std::forward<Dy>(dy), needs, std::get<I + 1>(*state_).load(owner, I)...);
    };
    if constexpr (is_once<F>) {
      if (recording) return refusing_gradients(owner, dy, compute);
    }
    return compute();
  }

  std::optional<std::tuple<F, typename SavedAs<T, S>::type...>> state_;
};

/// The node of an op with N inputs and one result.
template <class T, std::size_t N, class F, class... S>
class OpNode final : public Node<T> {
 public:
  OpNode(const char* name, std::uint64_t creation, const Ref<Value<T>>& result,
         std::array<Ref<Node<T>>, N>&& edges, F&& backward, const S&... saved)
      : Node<T>(name, creation, result->array.shape()),
        inputs_(std::move(edges)),
        backward_(&result, std::move(backward), saved...) {}

  std::span<const Ref<Node<T>>> inputs() const noexcept override { return inputs_; }

  void differentiate(Variable<T>* dy, Needs needs, Variable<T>* grads) override {
    Grads<T, N> found = backward_(*this, std::move(*dy), needs);
    std::move(found.begin(), found.end(), grads);
  }

  Ref<Node<T>> result(std::size_t) override { return Ref<Node<T>>(this); }

  void release() noexcept override {
    backward_.release();
    for (Ref<Node<T>>& input : inputs_) input = {};
  }

 private:
  std::array<Ref<Node<T>>, N> inputs_;
  Backward<T, F, S...> backward_;
};

/// The node of an op with any number of inputs.
template <class T, class F, class... S>
class ListNode final : public Node<T> {
 public:
  ListNode(const char* name, std::uint64_t creation, const Ref<Value<T>>& result,
           std::vector<Ref<Node<T>>>&& edges, F&& backward, const S&... saved)
      : Node<T>(name, creation, result->array.shape()),
        inputs_(std::move(edges)),
        backward_(&result, std::move(backward), saved...) {}

  std::span<const Ref<Node<T>>> inputs() const noexcept override { return inputs_; }

  void differentiate(Variable<T>* dy, Needs needs, Variable<T>* grads) override {
    std::vector<Variable<T>> found = backward_(*this, std::move(*dy), needs);
    if (found.size() != inputs_.size()) [[unlikely]] {
      fail<ValueError>("backward: '", this->op, "' must return ", inputs_.size(), " gradients, got ",
                       found.size());
    }
    std::move(found.begin(), found.end(), grads);
  }

  Ref<Node<T>> result(std::size_t) override { return Ref<Node<T>>(this); }

  void release() noexcept override {
    backward_.release();
    inputs_.clear();
  }

 private:
  std::vector<Ref<Node<T>>> inputs_;
  Backward<T, F, S...> backward_;
};

/// The node of an op with N inputs and M results, each of which has a PartNode.
template <class T, std::size_t N, std::size_t M, class F, class... S>
class ManyNode final : public Node<T> {
 public:
  ManyNode(const char* name, std::uint64_t creation, const std::array<Ref<Value<T>>, M>& values,
           std::array<Ref<Node<T>>, N>&& edges, F&& backward, const S&... saved)
      : Node<T>(name, creation, Shape{}),
        inputs_(std::move(edges)),
        backward_(values.data(), std::move(backward), saved...) {
    this->results = M;
    for (std::size_t i = 0; i < M; ++i) shapes_[i] = values[i]->array.shape();
  }

  std::span<const Ref<Node<T>>> inputs() const noexcept override { return inputs_; }

  void differentiate(Variable<T>* dys, Needs needs, Variable<T>* grads) override {
    std::array<Variable<T>, M> given;
    std::move(dys, dys + M, given.begin());
    Grads<T, N> found = backward_(*this, std::move(given), needs);
    std::move(found.begin(), found.end(), grads);
  }

  Ref<Node<T>> result(std::size_t place) override {
    return Ref<Node<T>>(new PartNode<T>(Ref<Node<T>>(this), place, next_order(this->order), shapes_[place]));
  }

  void release() noexcept override {
    backward_.release();
    for (Ref<Node<T>>& input : inputs_) input = {};
  }

 private:
  std::array<Ref<Node<T>>, N> inputs_;
  std::array<Shape, M> shapes_;
  Backward<T, F, S...> backward_;
};

/// The nodes of inputs, and a creation number above theirs.
template <class T, class... V>
std::pair<std::array<Ref<Node<T>>, sizeof...(V)>, std::uint64_t> edges_of(const Inputs<V...>& inputs) {
  auto edges = std::apply(
      [](const auto&... input) { return std::array<Ref<Node<T>>, sizeof...(V)>{Access<T>::node(input)...}; },
      inputs.variables);
  std::uint64_t newest = 0;
  for (const Ref<Node<T>>& edge : edges) newest = edge && edge->order > newest ? edge->order : newest;
  return {std::move(edges), next_order(newest)};
}

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
  using detail::Access;
  if (std::apply(will_record<V...>, inputs.variables)) {
    auto [edges, order] = detail::edges_of<T>(inputs);
    const auto make = [&, &made = edges, newest = order](const auto&... one) {
      using Made =
          detail::OpNode<T, sizeof...(V), std::remove_cvref_t<F>, std::remove_cvref_t<decltype(one)>...>;
      return detail::Ref<detail::Node<T>>(new Made(op, newest, Access<T>::value(y), std::move(made),
                                                   std::remove_cvref_t<F>(std::forward<F>(backward)),
                                                   one...));
    };
    Access<T>::node(y) = std::apply(make, saved.things);
  }
  return detail::told(op, std::move(y), inputs, attributes);
}

template <class T, class... V, class... S, class F>
Variable<T> record(const char* op, Variable<T>&& y, const Inputs<V...>& inputs, const Saved<S...>& saved,
                   F&& backward) {
  return record<T>(op, std::move(y), inputs, Attributes(), saved, std::forward<F>(backward));
}

/// record() for an op with several results, such as a matrix's eigenvalues and eigenvectors:
/// `backward(dys, needs, saved...)` gets an array of their gradients, undefined for a result that nothing
/// depends on. Output(i) is the result i.
template <class T, std::size_t M, class... V, class... A, class... S, class F>
std::array<Variable<T>, M> record_many(const char* op, std::array<Variable<T>, M> ys,
                                       const Inputs<V...>& inputs, const Attributes<A...>& attributes,
                                       const Saved<S...>& saved, F&& backward) {
  using detail::Access, detail::Node, detail::Ref;
  static_assert(M >= 2 && M < 256);
  if (std::apply(will_record<V...>, inputs.variables)) {
    auto [edges, order] = detail::edges_of<T>(inputs);
    std::array<Ref<detail::Value<T>>, M> values;
    for (std::size_t i = 0; i < M; ++i) values[i] = Access<T>::value(ys[i]);
    const auto make = [&, &made = edges, newest = order](const auto&... one) {
      using Made =
          detail::ManyNode<T, sizeof...(V), M, std::remove_cvref_t<F>, std::remove_cvref_t<decltype(one)>...>;
      return Ref<Node<T>>(new Made(op, newest, values, std::move(made),
                                   std::remove_cvref_t<F>(std::forward<F>(backward)), one...));
    };
    const Ref<Node<T>> node = std::apply(make, saved.things);
    for (std::size_t i = 0; i < M; ++i) Access<T>::node(ys[i]) = node->result(i);
  }
  if (detail::is_watched()) [[unlikely]] {
    for (std::size_t i = 0; i < M; ++i) detail::tell_op(op, ys[i], inputs, attributes, i);
  }
  return ys;
}

/// record() for an op with any number of inputs; `backward(dy, needs, saved...)` returns a vector of
/// gradients.
template <class T, class... A, class... S, class F>
Variable<T> record_list(const char* op, Variable<T>&& y, const std::vector<Variable<T>>& inputs,
                        const Attributes<A...>& attributes, const Saved<S...>& saved, F backward) {
  using detail::Access, detail::Node, detail::Ref;
  Variable<T> result = std::move(y);
  std::uint64_t newest = 0;
  bool wanted = false;
  for (const Variable<T>& input : inputs) {
    const Node<T>* node = Access<T>::node(input).get();
    if (node == nullptr) continue;
    wanted = true;
    newest = node->order > newest ? node->order : newest;
  }
  if (wanted && grad_enabled()) {
    std::vector<Ref<Node<T>>> edges;
    edges.reserve(inputs.size());
    for (const Variable<T>& input : inputs) edges.push_back(Access<T>::node(input));
    const auto make = [&](const auto&... one) {
      using Made = detail::ListNode<T, F, std::remove_cvref_t<decltype(one)>...>;
      return Ref<Node<T>>(new Made(op, detail::next_order(newest), Access<T>::value(result), std::move(edges),
                                   std::move(backward), one...));
    };
    Access<T>::node(result) = std::apply(make, saved.things);
  }
  if (detail::is_watched()) [[unlikely]] {
    std::vector<const Variable<T>*> pointers;
    pointers.reserve(inputs.size());
    for (const Variable<T>& input : inputs) pointers.push_back(&input);
    detail::tell_op<T, A...>(op, result, pointers, attributes, 0);
  }
  return result;
}

template <class T, class... A, class F>
Variable<T> record_list(const char* op, Variable<T>&& y, const std::vector<Variable<T>>& inputs,
                        const Attributes<A...>& attributes, F backward) {
  return record_list<T>(op, std::move(y), inputs, attributes, Saved(), std::move(backward));
}

template <class T, class F>
Variable<T> record_list(const char* op, Variable<T>&& y, const std::vector<Variable<T>>& inputs, F backward) {
  return record_list<T>(op, std::move(y), inputs, Attributes(), Saved(), std::move(backward));
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
  auto replayed = [composed =
                       std::remove_cvref_t<Composed>(std::forward<Composed>(composed))]<class... Operands>(
                      Variable<T> dy, Needs needs, Operands&&... operands) {
    auto arguments = std::forward_as_tuple(operands...);
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
