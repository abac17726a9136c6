#pragma once

// The node of a recorded op: its edges, its backward and the saved values, in one allocation.

#include <algorithm>
#include <array>
#include <optional>
#include <tuple>
#include <type_traits>
#include <vector>

#include "../../base/detail/scoped_value.hpp"
#include "../saved.hpp"
#include "recorded_gradients.hpp"

namespace xgrad::detail {

[[noreturn, gnu::cold]] void fail_once(const char* op);

/// Whether a backward computes on plain arrays, so that its gradients are not differentiable.
template <class F>
inline constexpr bool is_once = false;

/// Whether a backward is known to compute its gradients by ops while it is recorded.
template <class F>
inline constexpr bool is_by_ops = false;

/// Whether a backward has recompute(saved...), which returns the op's result.
template <class F>
inline constexpr bool recomputes_result = false;

/// A creation number greater than those of these nodes.
template <class Edges>
std::uint64_t order_above(const Edges& edges) {
  std::uint64_t newest = 0;
  for (const auto& edge : edges) newest = edge && edge->order > newest ? edge->order : newest;
  return next_order(newest);
}

/// An op with M results. `Edges` is an array or a vector of the nodes of its inputs. The backward `F` takes
/// the gradient of the result, or an array of gradients for several results, and returns one for each edge.
template <class T, std::size_t M, class Edges, class F, class... Kept>
class OpNode final : public Node<T> {
 public:
  OpNode(const OpInfo& made_by, const Shape& value_shape, Edges&& edges, F&& backward, Kept&&... kept)
      : Node<T>(&made_by, order_above(edges), value_shape),
        inputs_(std::move(edges)),
        state_(std::in_place, std::move(backward), std::move(kept)...) {
    this->results = M;
  }

  std::span<const Ref<Node<T>>> inputs() const noexcept override { return inputs_; }

  void differentiate(Variable<T>* dys, Needs needs, Variable<T>* grads) override {
    constexpr auto indices = std::index_sequence_for<Kept...>();
    if constexpr (!is_once<F> && !is_by_ops<F>) {
      if (recording) [[unlikely]]
        return checked(dys, needs, grads, indices);
    }
    if constexpr (M == 1) {
      store(call(std::move(*dys), needs, indices), grads);
    } else {
      std::array<Variable<T>, M> all;
      std::move(dys, dys + M, all.begin());
      store(call(std::move(all), needs, indices), grads);
    }
  }

  bool can_recompute() const noexcept override { return recomputes && state_.has_value(); }

  Variable<T> recompute() override {
    if constexpr (recomputes) {
      return recomputed(std::index_sequence_for<Kept...>());
    } else {
      return {};
    }
  }

  void release() noexcept override {
    if (!recomputes || this->recomputations.count() == 0) state_.reset();
    for (Ref<Node<T>>& input : inputs_) input = {};
  }

 private:
  static constexpr bool recomputes = recomputes_result<F>;

  template <std::size_t... I>
  Variable<T> recomputed(std::index_sequence<I...>) {
    const ScopedValue<bool> off(recording, false);
    return std::get<0>(*state_).recompute(std::get<I + 1>(*state_).load(*this, I)...);
  }

  template <class Dy, std::size_t... I>
  auto call(Dy&& dy, Needs needs, std::index_sequence<I...>) {
    static_assert(std::is_invocable_v<F&, Dy, Needs, decltype(std::get<I + 1>(*state_).load(*this, I))...>,
                  "a backward takes dy, Needs and what Saved names, in its order");
    const auto compute = [&] {
      return std::get<0>(*state_)(std::forward<Dy>(dy), needs, std::get<I + 1>(*state_).load(*this, I)...);
    };
    if constexpr (is_once<F>) {
      if (recording) return refusing_gradients(*this, dy, compute);
    }
    return compute();
  }

  /// The gradients of a backward that is recorded, whose graphs must contain what they depend on.
  template <std::size_t... I>
  [[gnu::cold, gnu::noinline]] void checked(Variable<T>* dys, Needs needs, Variable<T>* grads,
                                            std::index_sequence<I...>) {
    std::tuple<decltype(std::get<I + 1>(*state_).load(*this, I))...> saved(
        std::get<I + 1>(*state_).load(*this, I)...);
    Sources<T> sources;
    for (std::size_t i = 0; i < M; ++i) sources.add(dys[i], Sources<T>::gradient);
    (sources.add(std::get<I>(saved), I), ...);
    const auto compute = [&](auto&& dy) {
      return std::get<0>(*state_)(std::forward<decltype(dy)>(dy), needs,
                                  std::tuple_element_t<I, decltype(saved)>(std::get<I>(saved))...);
    };
    const auto backward = [&](Variable<T>* to) {
      if constexpr (M == 1) {
        store(compute(Variable<T>(*dys)), to);
      } else {
        std::array<Variable<T>, M> all;
        std::copy(dys, dys + M, all.begin());
        store(compute(std::move(all)), to);
      }
    };
    const auto run = [](const void* context, Variable<T>* to) {
      (*static_cast<decltype(backward)*>(context))(to);
    };
    recorded_gradients<T>(*this, sources, needs, grads, run, &backward);
  }

  template <class Found>
  void store(Found&& found, Variable<T>* grads) const {
    static_assert(
        requires { found.begin(); }, "a backward returns Grads, or a vector with record_list");
    if constexpr (requires { std::tuple_size<Edges>::value; }) {
      static_assert(std::tuple_size_v<Found> == std::tuple_size_v<Edges>, "a gradient for each input");
    } else if (found.size() != inputs_.size()) {
      fail<ValueError>("backward: '", this->op->name, "' must return ", inputs_.size(), " gradients, got ",
                       found.size());
    }
    std::move(found.begin(), found.end(), grads);
  }

  Edges inputs_;
  std::optional<std::tuple<F, Kept...>> state_;
};

/// Adds `ys`, the M results of an op, to the graph.
template <std::size_t M, class T, class Edges, class F, class... S>
void add_node(const OpInfo& op, Variable<T>* ys, Edges edges, F backward, const Saved<S...>& saved) {
  Ref<Node<T>> node(std::apply(
      [&](const S&... thing) {
        using Made = OpNode<T, M, Edges, F, decltype(kept(ys, thing))...>;
        return new Made(op, ys->shape(), std::move(edges), std::move(backward), kept(ys, thing)...);
      },
      saved.things));
  if constexpr (M == 1) {
    Access<T>::node(*ys) = std::move(node);
  } else {
    for (std::size_t i = 0; i < M; ++i) Access<T>::node(ys[i]) = node_of_result(*node, i, ys[i].shape());
  }
}

/// Returns compute(), the gradients of `owner`, whose backward computes on plain arrays, marked as
/// non-differentiable.
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
  for (Variable<T>& gradient : grads) {
    if (!gradient.defined()) continue;
    const auto refuse = [op = owner.op->name](const Variable<T>&, Needs) -> std::vector<Variable<T>> {
      fail_once(op);
    };
    add_node<1>(*owner.op, &gradient, edges, refuse, Saved());
  }
  return grads;
}

}  // namespace xgrad::detail
