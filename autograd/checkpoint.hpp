#pragma once

#include <concepts>
#include <functional>
#include <initializer_list>
#include <type_traits>
#include <utility>
#include <vector>

#include "../graph/detail/returns_variable.hpp"
#include "../graph/op.hpp"
#include "../graph/variable.hpp"

namespace xgrad {

namespace detail {

template <class T>
Variable<T> checkpoint(std::function<Variable<T>(const std::vector<Variable<T>>&)> f,
                       const std::vector<Variable<T>>& x);

template <class T>
using Layers = std::vector<VariableFunction<T, const Variable<T>&>>;
template <class T>
Variable<T> checkpoint_sequential(const Layers<T>& functions, std::size_t segments, const Variable<T>& x);

}  // namespace detail

/// y = f(x), for which the graph saves only x: the backward pass recomputes the intermediate values of f.
/// Trades time for memory: a chain of n steps, checkpointed every sqrt(n) of them, holds about 2 sqrt(n)
/// steps' values at once instead of n, for one additional forward pass.
///
/// f takes the vector x (or a Variable, below) and returns a Variable. The graph keeps it, so it must not
/// refer to objects destroyed before the backward pass, and must compute the same then: it draws the same
/// random numbers, and must not depend on state that changes in between. Other Variables that f reads, such
/// as a model's parameters, get gradients, too. Derivatives of any order. Throws ShapeError, in the backward
/// pass, if f then returns another shape, and GraphError if x was changed in place or f returns other values.
///
/// Chen, Xu, Zhang and Guestrin, Training deep nets with sublinear memory cost (2016);
/// https://pytorch.org/docs/stable/checkpoint.html
template <class T, class F>
Variable<T> checkpoint(F f, const std::vector<Variable<T>>& x) {
  detail::check_returns_variable<T, F&, const std::vector<Variable<T>>&>();
  return detail::checkpoint<T>(std::move(f), x);
}

template <class T, class F>
Variable<T> checkpoint(F f, std::initializer_list<Variable<T>> x) {
  return checkpoint(std::move(f), std::vector<Variable<T>>(x));
}

template <class T, class F>
Variable<T> checkpoint(F f, const Variable<T>& x) {
  detail::check_returns_variable<T, const F&, const Variable<T>&>();
  return detail::checkpoint<T>(
      [f = std::move(f)](const std::vector<Variable<T>>& only) -> Variable<T> { return f(only.front()); },
      {x});
}

/// f_n(... f_2(f_1(x))), split into this many segments of equal length, each of which except the last is a
/// checkpoint: for example for a stack of encoder layers. Throws ValueError for fewer functions than
/// segments, and GraphError for a function that returns a constant of a variable that requires a gradient.
/// https://pytorch.org/docs/stable/checkpoint.html#torch.utils.checkpoint.checkpoint_sequential
template <class T, class F>
Variable<T> checkpoint_sequential(const std::vector<F>& functions, std::size_t segments,
                                  const Variable<T>& x) {
  return detail::checkpoint_sequential(detail::Layers<T>(functions.begin(), functions.end()), segments, x);
}

template <class T>
Variable<T> checkpoint_sequential(const detail::Layers<std::type_identity_t<T>>& functions,
                                  std::size_t segments, const Variable<T>& x) {
  return detail::checkpoint_sequential(functions, segments, x);
}

namespace ops {

inline constexpr Op checkpoint("checkpoint", {"x"});

}  // namespace ops
}  // namespace xgrad
