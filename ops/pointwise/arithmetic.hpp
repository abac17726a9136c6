#pragma once

#include "../../graph/op.hpp"
#include "detail/operands.hpp"

// add, sub, mul, div and neg, the operators + - * /, are declared with Variable. Two operands broadcast as in
// NumPy: shapes are aligned at their last axes, and an axis of length 1 stretches to the other's length. The
// gradient of an operand is summed over its stretched axes. A number or an xtensor expression as an operand
// is a constant.
//   add: da = dy, db = dy              sub: da = dy, db = -dy
//   mul: da = dy b, db = dy a          div: da = dy / b, db = -dy y / b
// Errors: ShapeError "add: shapes must broadcast, got a (2, 3) and b (4)".
// https://pytorch.org/docs/stable/notes/broadcasting.html

namespace xgrad {

/// y = a + alpha b; da = dy, db = alpha dy. https://pytorch.org/docs/stable/generated/torch.add.html
template <class T>
Variable<T> add(const Variable<T>& a, const Variable<T>& b, std::type_identity_t<T> alpha);
/// y = a - alpha b; da = dy, db = -alpha dy. https://pytorch.org/docs/stable/generated/torch.sub.html
template <class T>
Variable<T> sub(const Variable<T>& a, const Variable<T>& b, std::type_identity_t<T> alpha);

/// a^b; 0^0 = 1, and a negative number to a fractional power is nan. For b = -1, -1/2, 1/2, 2 and 3 it is
/// computed by reciprocal, rsqrt, sqrt and products, as in PyTorch. da = dy b a^(b - 1), 0 where b = 0; db =
/// dy y ln(a), 0 where a = 0 and b >= 0. https://pytorch.org/docs/stable/generated/torch.pow.html
template <class T>
Variable<T> pow(const Variable<T>& a, const Variable<T>& b);
template <class T>
Variable<T> pow(const Variable<T>& a, std::type_identity_t<T> b);
template <class T>
Variable<T> pow(std::type_identity_t<T> a, const Variable<T>& b);
template <class A, class B>
requires detail::VariableAndExpression<A, B> detail::variable_of<A, B> pow(A&& a, B&& b) {
  return pow(detail::variable_of<A, B>(a), detail::variable_of<A, B>(b));
}

/// The larger of a and b; nan if either is nan. The gradient goes to the larger operand, half to each where
/// they are equal. https://pytorch.org/docs/stable/generated/torch.maximum.html
template <class T>
Variable<T> maximum(const Variable<T>& a, const Variable<T>& b);
/// The smaller of a and b, as maximum. https://pytorch.org/docs/stable/generated/torch.minimum.html
template <class T>
Variable<T> minimum(const Variable<T>& a, const Variable<T>& b);
template <class A, class B>
requires detail::VariableAndConstant<A, B> detail::variable_of<A, B> maximum(A&& a, B&& b) {
  using V = detail::variable_of<A, B>;
  return maximum(detail::as_variable<V>(a), detail::as_variable<V>(b));
}
template <class A, class B>
requires detail::VariableAndConstant<A, B> detail::variable_of<A, B> minimum(A&& a, B&& b) {
  using V = detail::variable_of<A, B>;
  return minimum(detail::as_variable<V>(a), detail::as_variable<V>(b));
}

/// sqrt(a^2 + b^2), without overflow. da = dy a / y, db = dy b / y, 0 at the origin, where PyTorch's is nan.
/// https://pytorch.org/docs/stable/generated/torch.hypot.html
template <class T>
Variable<T> hypot(const Variable<T>& a, const Variable<T>& b);
template <class A, class B>
requires detail::VariableAndConstant<A, B> detail::variable_of<A, B> hypot(A&& a, B&& b) {
  using V = detail::variable_of<A, B>;
  return hypot(detail::as_variable<V>(a), detail::as_variable<V>(b));
}

/// start + weight (end - start), where weight also broadcasts, or is a number; start and end themselves for
/// the weights 0 and 1, even if the other is infinite.
/// https://pytorch.org/docs/stable/generated/torch.lerp.html
template <class T>
Variable<T> lerp(const Variable<T>& start, const Variable<T>& end, const Variable<T>& weight);
template <class T>
Variable<T> lerp(const Variable<T>& start, const Variable<T>& end, std::type_identity_t<T> weight);

namespace detail {

/// x mask, but exactly 0 where mask is 0, even if x is infinite or nan there; the two broadcast. mask is a
/// constant. For gradients that are 0 by the chain rule: an infinite dy must not make them nan.
template <class T>
Variable<T> masked_mul(const Variable<T>& x, const Variable<T>& mask);

/// (a - b)^2; the two broadcast.
template <class T>
Variable<T> squared_difference(const Variable<T>& a, const Variable<T>& b);

/// 1 where a == b, else 0; the two broadcast.
template <class T>
Variable<T> equal(const Variable<T>& a, const Variable<T>& b);

}  // namespace detail

namespace ops {

inline constexpr Op add("add", {"a", "b"}, {"other"});
inline constexpr Op sub("sub", {"a", "b"});
inline constexpr Op mul("mul", {"a", "b"}, {"other"});
inline constexpr Op div("div", {"a", "b"}, {"other"});
inline constexpr Op pow("pow", {"a", "b"}, {"exponent"});
inline constexpr Op maximum("maximum", {"a", "b"});
inline constexpr Op minimum("minimum", {"a", "b"});
inline constexpr Op hypot("hypot", {"a", "b"});
inline constexpr Op squared_difference("squared_difference", {"a", "b"});
inline constexpr Op masked_mul("masked_mul", {"x", "mask"});

}  // namespace ops
}  // namespace xgrad
