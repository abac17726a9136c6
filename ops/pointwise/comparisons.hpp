#pragma once

#include "detail/operands.hpp"

// Comparisons of elements: a mask, which has no gradient. The two broadcast, or throw ShapeError; one may be
// a number. With nan all but ne are false. https://pytorch.org/docs/stable/torch.html#comparison-ops

namespace xgrad {

/// a = b.
template <class T>
[[nodiscard]] Mask eq(const Variable<T>& a, const Variable<T>& b);
template <class A, class B>
requires detail::VariableAndConstant<A, B> Mask eq(A&& a, B&& b) {
  using V = detail::variable_of<A, B>;
  return eq(detail::as_variable<V>(a), detail::as_variable<V>(b));
}

/// a != b.
template <class T>
[[nodiscard]] Mask ne(const Variable<T>& a, const Variable<T>& b);
template <class A, class B>
requires detail::VariableAndConstant<A, B> Mask ne(A&& a, B&& b) {
  using V = detail::variable_of<A, B>;
  return ne(detail::as_variable<V>(a), detail::as_variable<V>(b));
}

/// a < b.
template <class T>
[[nodiscard]] Mask lt(const Variable<T>& a, const Variable<T>& b);
template <class A, class B>
requires detail::VariableAndConstant<A, B> Mask lt(A&& a, B&& b) {
  using V = detail::variable_of<A, B>;
  return lt(detail::as_variable<V>(a), detail::as_variable<V>(b));
}

/// a <= b.
template <class T>
[[nodiscard]] Mask le(const Variable<T>& a, const Variable<T>& b);
template <class A, class B>
requires detail::VariableAndConstant<A, B> Mask le(A&& a, B&& b) {
  using V = detail::variable_of<A, B>;
  return le(detail::as_variable<V>(a), detail::as_variable<V>(b));
}

/// a > b.
template <class T>
[[nodiscard]] Mask gt(const Variable<T>& a, const Variable<T>& b);
template <class A, class B>
requires detail::VariableAndConstant<A, B> Mask gt(A&& a, B&& b) {
  using V = detail::variable_of<A, B>;
  return gt(detail::as_variable<V>(a), detail::as_variable<V>(b));
}

/// a >= b.
template <class T>
[[nodiscard]] Mask ge(const Variable<T>& a, const Variable<T>& b);
template <class A, class B>
requires detail::VariableAndConstant<A, B> Mask ge(A&& a, B&& b) {
  using V = detail::variable_of<A, B>;
  return ge(detail::as_variable<V>(a), detail::as_variable<V>(b));
}

}  // namespace xgrad
