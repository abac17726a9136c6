#pragma once

#include <concepts>
#include <functional>
#include <initializer_list>
#include <type_traits>
#include <utility>
#include <vector>

#include "../graph/op.hpp"
#include "../graph/variable.hpp"

namespace xgrad {

namespace detail {

template <class T>
Variable<T> checkpoint(std::function<Variable<T>(const std::vector<Variable<T>>&)> f,
                       const std::vector<Variable<T>>& x);

}  // namespace detail

/// y = f(x), of which the graph keeps x alone: what f computes on its way is computed again when the backward
/// pass comes there. Memory for time: a chain of n steps, checkpointed every sqrt(n) of them, holds about
/// 2 sqrt(n) steps' values at once instead of n, and costs one forward pass more.
///
/// f takes the vector x (or a Variable, below) and returns a Variable. It is kept in the graph, so that it
/// must not refer to what is gone when it is called again, and has to compute the same then: it draws the
/// same random numbers, and must not depend on what changes meanwhile. What else f reads, such as a model's
/// parameters, gets its gradients, too. Derivatives of any order. Throws ShapeError, in the backward pass, if
/// f returns another shape when it is called again, and GraphError if x was changed in place.
///
/// Chen, Xu, Zhang and Guestrin, Training deep nets with sublinear memory cost (2016);
/// https://pytorch.org/docs/stable/checkpoint.html
template <class T, class F>
Variable<T> checkpoint(F f, const std::vector<Variable<T>>& x) {
  return detail::checkpoint<T>(std::move(f), x);
}

template <class T, class F>
Variable<T> checkpoint(F f, std::initializer_list<Variable<T>> x) {
  return detail::checkpoint<T>(std::move(f), std::vector<Variable<T>>(x));
}

template <class T, class F>
Variable<T> checkpoint(F f, const Variable<T>& x) {
  return detail::checkpoint<T>(
      [f = std::move(f)](const std::vector<Variable<T>>& only) -> Variable<T> { return f(only.front()); },
      {x});
}

/// f_n(... f_2(f_1(x))), cut into this many segments of equal length, of which each but the last is a
/// checkpoint: for a stack of encoder layers, say. Throws ValueError unless there are as many functions as
/// segments, at least.
/// https://pytorch.org/docs/stable/checkpoint.html#torch.utils.checkpoint.checkpoint_sequential
template <class T>
Variable<T> checkpoint_sequential(
    const std::vector<std::function<Variable<T>(const Variable<T>&)>>& functions, std::size_t segments,
    const Variable<std::type_identity_t<T>>& x);

namespace ops {

inline constexpr Op checkpoint("checkpoint", {"x"});

}  // namespace ops
}  // namespace xgrad
