#pragma once

#include "../../graph/op.hpp"
#include "detail/operands.hpp"

// Elementwise piecewise constant functions, and the remainder; y has the shape of x. The gradient of the
// former is 0. nan stays nan, but its sign is 0. https://pytorch.org/docs/stable/torch.html#pointwise-ops

namespace xgrad {

/// The largest integer <= x.
template <class T>
Variable<T> floor(const Variable<T>& x);

/// The smallest integer >= x.
template <class T>
Variable<T> ceil(const Variable<T>& x);

/// The nearest integer; ties go to the even one. https://pytorch.org/docs/stable/generated/torch.round.html
template <class T>
Variable<T> round(const Variable<T>& x);

/// x rounded towards 0.
template <class T>
Variable<T> trunc(const Variable<T>& x);

/// 1 where x > 0, -1 where x < 0, else 0.
template <class T>
Variable<T> sign(const Variable<T>& x);

/// The remainder a - b trunc(a / b), with the sign of a; nan where b = 0. da = dy, db = -dy trunc(a / b). The
/// two broadcast, or throw ShapeError; one may be a number.
/// https://pytorch.org/docs/stable/generated/torch.fmod.html
template <class T>
Variable<T> fmod(const Variable<T>& a, const Variable<T>& b);
template <class A, class B>
requires detail::VariableAndConstant<A, B> detail::variable_of<A, B> fmod(A&& a, B&& b) {
  using V = detail::variable_of<A, B>;
  return fmod(detail::as_variable<V>(a), detail::as_variable<V>(b));
}

/// The remainder a - b floor(a / b), with the sign of b; nan where b = 0. da = dy, db = -dy floor(a / b). The
/// two broadcast, or throw ShapeError; one may be a number.
/// https://pytorch.org/docs/stable/generated/torch.remainder.html
template <class T>
Variable<T> remainder(const Variable<T>& a, const Variable<T>& b);
template <class A, class B>
requires detail::VariableAndConstant<A, B> detail::variable_of<A, B> remainder(A&& a, B&& b) {
  using V = detail::variable_of<A, B>;
  return remainder(detail::as_variable<V>(a), detail::as_variable<V>(b));
}

namespace ops {

inline constexpr Op floor("floor", {"x"});
inline constexpr Op ceil("ceil", {"x"});
inline constexpr Op round("round", {"x"});
inline constexpr Op trunc("trunc", {"x"});
inline constexpr Op sign("sign", {"x"});
inline constexpr Op fmod("fmod", {"a", "b"});
inline constexpr Op remainder("remainder", {"a", "b"});

}  // namespace ops
}  // namespace xgrad
