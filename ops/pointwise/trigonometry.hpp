#pragma once

#include "../../graph/op.hpp"
#include "detail/operands.hpp"

// Elementwise trigonometric and hyperbolic functions, in radians; y has the shape of x. nan stays nan. tanh
// is in elementwise.hpp. https://pytorch.org/docs/stable/torch.html#pointwise-ops

namespace xgrad {

/// y = sin(x), dx = dy cos(x).
template <class T>
Variable<T> sin(const Variable<T>& x);

/// y = cos(x), dx = -dy sin(x).
template <class T>
Variable<T> cos(const Variable<T>& x);

/// y = tan(x), dx = dy (1 + y^2).
template <class T>
Variable<T> tan(const Variable<T>& x);

/// y in [-pi / 2, pi / 2] with sin(y) = x, dx = dy / sqrt(1 - x^2); nan where |x| > 1.
template <class T>
Variable<T> asin(const Variable<T>& x);

/// y in [0, pi] with cos(y) = x, dx = -dy / sqrt(1 - x^2); nan where |x| > 1.
template <class T>
Variable<T> acos(const Variable<T>& x);

/// y in [-pi / 2, pi / 2] with tan(y) = x, dx = dy / (1 + x^2).
template <class T>
Variable<T> atan(const Variable<T>& x);

/// The angle in [-pi, pi] of the point with ordinate a and abscissa b: atan(a / b) in the quadrant of their
/// signs. da = dy b / (a^2 + b^2), db = -dy a / (a^2 + b^2), 0 at the origin. The two broadcast, or throw
/// ShapeError; one may be a number. https://pytorch.org/docs/stable/generated/torch.atan2.html
template <class T>
Variable<T> atan2(const Variable<T>& a, const Variable<T>& b);
template <class A, class B>
requires detail::VariableAndConstant<A, B> detail::variable_of<A, B> atan2(A&& a, B&& b) {
  using V = detail::variable_of<A, B>;
  return atan2(detail::as_variable<V>(a), detail::as_variable<V>(b));
}

/// y = (e^x - e^-x) / 2, dx = dy cosh(x).
template <class T>
Variable<T> sinh(const Variable<T>& x);

/// y = (e^x + e^-x) / 2, dx = dy sinh(x).
template <class T>
Variable<T> cosh(const Variable<T>& x);

/// y with sinh(y) = x, dx = dy / sqrt(x^2 + 1).
template <class T>
Variable<T> asinh(const Variable<T>& x);

/// y >= 0 with cosh(y) = x, dx = dy / sqrt(x^2 - 1); nan below 1.
template <class T>
Variable<T> acosh(const Variable<T>& x);

/// y with tanh(y) = x, dx = dy / (1 - x^2); nan outside of [-1, 1].
template <class T>
Variable<T> atanh(const Variable<T>& x);

namespace ops {

inline constexpr Op sin("sin", {"x"});
inline constexpr Op cos("cos", {"x"});
inline constexpr Op tan("tan", {"x"});
inline constexpr Op asin("asin", {"x"});
inline constexpr Op acos("acos", {"x"});
inline constexpr Op atan("atan", {"x"});
inline constexpr Op sinh("sinh", {"x"});
inline constexpr Op cosh("cosh", {"x"});
inline constexpr Op asinh("asinh", {"x"});
inline constexpr Op acosh("acosh", {"x"});
inline constexpr Op atanh("atanh", {"x"});
inline constexpr Op atan2("atan2", {"a", "b"});

}  // namespace ops
}  // namespace xgrad
