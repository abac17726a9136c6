#pragma once

#include "../../graph/op.hpp"
#include "detail/operands.hpp"

// Elementwise exponentials and logarithms; y has the shape of x. nan stays nan. exp and log are in
// elementwise.hpp. https://pytorch.org/docs/stable/torch.html#pointwise-ops

namespace xgrad {

/// y = 2^x, dx = dy y ln 2.
template <class T>
Variable<T> exp2(const Variable<T>& x);

/// y = e^x - 1, without cancellation near 0; dx = dy (y + 1).
template <class T>
Variable<T> expm1(const Variable<T>& x);

/// y = ln(1 + x), without cancellation near 0; dx = dy / (1 + x). -inf at -1, nan below.
template <class T>
Variable<T> log1p(const Variable<T>& x);

/// y = ln x / ln 2, dx = dy / (x ln 2); log2(0) = -inf, nan for negative numbers.
template <class T>
Variable<T> log2(const Variable<T>& x);

/// y = ln x / ln 10, dx = dy / (x ln 10); log10(0) = -inf, nan for negative numbers.
template <class T>
Variable<T> log10(const Variable<T>& x);

/// a ln b, and 0 where a = 0 unless b is nan. da = dy ln b, 0 where a = 0 and b <= 0; db = dy a / b. The two
/// broadcast, or throw ShapeError; one may be a number.
/// https://pytorch.org/docs/stable/generated/torch.xlogy.html
template <class T>
Variable<T> xlogy(const Variable<T>& a, const Variable<T>& b);
template <class A, class B>
requires detail::VariableAndConstant<A, B> detail::variable_of<A, B> xlogy(A&& a, B&& b) {
  using V = detail::variable_of<A, B>;
  return xlogy(detail::as_variable<V>(a), detail::as_variable<V>(b));
}

/// ln(e^a + e^b), without overflow. da = dy / (1 + e^(b - a)), db = dy / (1 + e^(a - b)), nan where both are
/// the same infinity. The two broadcast, or throw ShapeError; one may be a number.
/// https://pytorch.org/docs/stable/generated/torch.logaddexp.html
template <class T>
Variable<T> logaddexp(const Variable<T>& a, const Variable<T>& b);
template <class A, class B>
requires detail::VariableAndConstant<A, B> detail::variable_of<A, B> logaddexp(A&& a, B&& b) {
  using V = detail::variable_of<A, B>;
  return logaddexp(detail::as_variable<V>(a), detail::as_variable<V>(b));
}

namespace ops {

inline constexpr Op exp2("exp2", {"x"});
inline constexpr Op expm1("expm1", {"x"});
inline constexpr Op log1p("log1p", {"x"});
inline constexpr Op log2("log2", {"x"});
inline constexpr Op log10("log10", {"x"});
inline constexpr Op xlogy("xlogy", {"a", "b"});
inline constexpr Op logaddexp("logaddexp", {"a", "b"});

}  // namespace ops
}  // namespace xgrad
