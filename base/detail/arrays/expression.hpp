#pragma once

#include <algorithm>
#include <concepts>
#include <cstddef>
#include <span>
#include <type_traits>

#include "../../dims.hpp"

namespace xgrad::detail {

/// An array of shape (N).
template <class T, class E>
Array<T> array_of(std::span<const E> elements) {
  Array<T> array = Array<T>::from_shape({elements.size()});
  std::transform(elements.begin(), elements.end(), array.data(), [](E e) { return static_cast<T>(e); });
  return array;
}

template <class E>
inline constexpr bool is_expression = xt::is_xexpression<std::remove_cvref_t<E>>::value;

/// An expression of floating-point numbers.
template <class E>
concept FloatExpression =
    is_expression<E> && std::floating_point<typename std::remove_cvref_t<E>::value_type>;

/// An expression of integers.
template <class E>
concept IdsExpression = is_expression<E> && Integer<typename std::remove_cvref_t<E>::value_type>;

/// An expression whose elements are no ids: of floating-point numbers, or a mask.
template <class E>
concept NoIds = is_expression<E> &&(std::floating_point<typename std::remove_cvref_t<E>::value_type> ||
                                    std::same_as<typename std::remove_cvref_t<E>::value_type, bool>);

/// An expression whose elements are not true or false.
template <class E>
concept NoMask = is_expression<E> && !std::same_as<typename std::remove_cvref_t<E>::value_type, bool>;

template <class T, class V>
inline constexpr bool is_wider_number = std::floating_point<V> && (sizeof(V) > sizeof(T));

/// Whether an expression has elements wider than T. A number in it does not count: in x * 0.5 the 0.5 is
/// rounded to x's type.
template <class T, class E>
inline constexpr bool is_wider = is_wider_number<T, typename E::value_type>;
template <class T, class E>
inline constexpr bool is_wider<T, xt::xscalar<E>> = false;
template <class T, class F, class... E>
inline constexpr bool is_wider<T, xt::xfunction<F, E...>> =
    is_wider_number<T, typename xt::xfunction<F, E...>::value_type> &&
    (is_wider<T, std::remove_cvref_t<E>> || ...);

/// The array of an expression.
template <class T, class E>
Array<T> evaluated(const xt::xexpression<E>& expression) {
  static_assert(
      !is_wider<T, E>,
      "an array of double would be rounded to float: write xt::cast<float>(array) if that is meant");
  return Array<T>(expression);
}

}  // namespace xgrad::detail
