#pragma once

#include <optional>

#include "../../graph/op.hpp"
#include "../pointwise/detail/operands.hpp"

namespace xgrad {

/// y = a where condition is true, else b; all three broadcast. da = dy where condition is true, db = dy where
/// it is false, exactly 0 elsewhere, for any values there.
/// https://pytorch.org/docs/stable/generated/torch.where.html
template <class T>
Variable<T> where(const Mask& condition, const Variable<T>& a, const Variable<T>& b);

/// where() for any expression as the condition and an expression or a number as a or b. It has the signature
/// of xt::where, and is preferred because it is constrained.
template <class C, class A, class B>
requires(detail::is_expression<C> && !detail::NoMask<C> &&
         (detail::is_variable<std::remove_cvref_t<A>> ||
          detail::is_variable<std::remove_cvref_t<B>>)) auto where(C&& condition, A&& a, B&& b) {
  using V = detail::variable_of<A, B>;
  return where<typename V::value_type>(condition, detail::as_variable<V>(a), detail::as_variable<V>(b));
}

/// A condition is of bool: compare the numbers.
template <detail::NoMask C, class A, class B>
requires(detail::is_variable<std::remove_cvref_t<A>> ||
         detail::is_variable<std::remove_cvref_t<B>>) void where(const C& condition, const A& a,
                                                                 const B& b) = delete;

/// x with other numbers for nan, infinity and -infinity; those of infinities are the largest and the lowest
/// number of T unless given. dx = dy where x is finite, else 0.
/// https://pytorch.org/docs/stable/generated/torch.nan_to_num.html
template <class T>
Variable<T> nan_to_num(const Variable<T>& x, std::type_identity_t<T> nan = 0,
                       std::type_identity_t<std::optional<T>> posinf = {},
                       std::type_identity_t<std::optional<T>> neginf = {});

namespace ops {

inline constexpr Op where("where", {"a", "b"}, {"condition"});

}  // namespace ops
}  // namespace xgrad
