#pragma once

#include "../../../graph/variable.hpp"

// Operands of ops that take a Variable and a constant.

namespace xgrad::detail {

/// One of A and B is a Variable, the other an xtensor expression or a number.
template <class A, class B>
concept VariableAndConstant = VariableAndExpression<A, B> ||
                              (is_variable<std::remove_cvref_t<A>>&& Number<std::remove_cvref_t<B>>) ||
                              (Number<std::remove_cvref_t<A>> && is_variable<std::remove_cvref_t<B>>);

/// Returns a Variable unchanged, a number or an expression as a constant.
template <class V, class X>
V as_variable(X&& x) {
  if constexpr (Number<std::remove_cvref_t<X>>) {
    return V(static_cast<typename V::value_type>(x));
  } else {
    return V(std::forward<X>(x));
  }
}

}  // namespace xgrad::detail
