#pragma once

// Backwards that compute on plain arrays.

#include "record.hpp"

namespace xgrad {

/// A backward that computes on plain arrays: differentiating its gradients throws GraphError. Made by once().
template <class F>
struct Once {
  template <class V, class... S>
  auto operator()(V&& dy, Needs needs, S&&... saved) const {
    return backward(std::forward<V>(dy), needs, std::forward<S>(saved)...);
  }

  F backward;
};

namespace detail {
template <class F>
inline constexpr bool is_once<Once<F>> = true;
}  // namespace detail

/// Marks the backward of record() as computing on plain arrays rather than with ops: without it, a second
/// derivative through `backward` would miss terms. Under create_graph, gradients are computed as always;
/// differentiating them throws GraphError.
/// https://pytorch.org/docs/stable/generated/torch.autograd.function.once_differentiable.html
template <class F>
Once<std::remove_cvref_t<F>> once(F&& backward) {
  return {std::forward<F>(backward)};
}

/// A backward of an op whose result takes little time: `forward(saved...)` computes it again, for ops that
/// save Recomputed(result).
template <class F, class Forward>
struct RecomputingBackward {
  RecomputingBackward(F of_gradients, Forward of_result)
      : backward(std::move(of_gradients)), forward(std::move(of_result)) {}

  template <class V, class... S>
  auto operator()(V&& dy, Needs needs, S&&... saved) const {
    return backward(std::forward<V>(dy), needs, std::forward<S>(saved)...);
  }

  template <class... S>
  auto recompute(S&&... saved) const {
    return forward(std::forward<S>(saved)...);
  }

  F backward;
  Forward forward;
};

/// A backward in two forms with the same gradients: `kernel` computes them on plain arrays, `composed` with
/// ops. The latter is used when the backward itself is recorded, for gradients of gradients.
template <class Kernel, class Composed>
struct KernelBackward {
  KernelBackward(Kernel k, Composed c) : kernel(std::move(k)), composed(std::move(c)) {}

  template <class V, class... S>
  auto operator()(V&& dy, Needs needs, S&&... saved) const {
    if (grad_enabled()) [[unlikely]]
      return composed(std::forward<V>(dy), needs, std::forward<S>(saved)...);
    return kernel(std::forward<V>(dy), needs, std::forward<S>(saved)...);
  }

  template <class... S>
  auto recompute(S&&... saved) const {
    return kernel.recompute(std::forward<S>(saved)...);
  }

  Kernel kernel;
  Composed composed;
};

namespace detail {

/// A backward that is known to compute by ops whenever it is recorded: no check calls it again.
template <class F>
struct ByOps {
  template <class V, class... S>
  auto operator()(V&& dy, Needs needs, S&&... saved) const {
    return backward(std::forward<V>(dy), needs, std::forward<S>(saved)...);
  }

  F backward;
};
template <class F>
ByOps(F) -> ByOps<F>;  // clang deduces none for aggregates before its version 17

template <class F>
inline constexpr bool is_by_ops<ByOps<F>> = true;
template <class Kernel, class Composed>
inline constexpr bool is_by_ops<KernelBackward<Kernel, Composed>> = is_by_ops<Composed>;
template <class F, class Forward>
inline constexpr bool recomputes_result<RecomputingBackward<F, Forward>> = true;
template <class Kernel, class Composed>
inline constexpr bool recomputes_result<KernelBackward<Kernel, Composed>> = recomputes_result<Kernel>;
}  // namespace detail

}  // namespace xgrad
