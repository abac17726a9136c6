#pragma once

#include <concepts>
#include <type_traits>

#include "array.hpp"
#include "dims.hpp"
#include "error.hpp"

// Arrays by shape, with elements of any type: zeros<float>({2, 3}), full<bool>({n, n}, true),
// arange<std::int64_t>({2, 3}). Each throws ShapeError for more elements than fit in memory.
// https://pytorch.org/docs/stable/torch.html#creation-ops

namespace xgrad {

namespace detail {

template <class T>
Array<T> filled(const char* op, const Shape& shape, T value) {
  check_count(op, shape);
  Array<T> x = Array<T>::from_shape(shape);
  x.fill(value);
  return x;
}

/// A value of an element: a number for numbers, which is whole for integers, a bool for bool.
template <class V, class T>
concept FillsArrayOf = (std::same_as<T, bool> && std::same_as<V, bool>) ||
                       (!std::same_as<T, bool> && Number<V> &&
                        (std::floating_point<T> || !std::floating_point<V>));

}  // namespace detail

/// An array of this shape with equal elements. One of integers takes no floating-point value.
template <class T, detail::FillsArrayOf<T> V>
[[nodiscard]] Array<T> full(const Shape& shape, V value) {
  return detail::filled("full", shape, static_cast<T>(value));
}

/// An array of this shape of 0, or of false.
template <class T>
[[nodiscard]] Array<T> zeros(const Shape& shape) {
  return detail::filled("zeros", shape, T{});
}

/// An array of this shape of 1, or of true.
template <class T>
[[nodiscard]] Array<T> ones(const Shape& shape) {
  return detail::filled("ones", shape, T{1});
}

/// start, start + step, start + 2 step, ... in row-major order; for float computed in double. Throws
/// ShapeError for several axes whose first has length 0: arange<T>({0, 10}) is meant as a range, not a shape.
template <class T, detail::FillsArrayOf<T> A = T, detail::FillsArrayOf<T> B = T>
requires(!std::same_as<T, bool>) [[nodiscard]] Array<T> arange(const Shape& shape, A start = 0, B step = 1) {
  if (shape.size() > 1 && shape[0] == 0)
    detail::fail<ShapeError>("arange: the first of several axes must not be empty, got ", shape,
                             ", a shape, not a range: arange<T>({n}, start, step)");
  using Sum = std::conditional_t<std::floating_point<T>, double, T>;
  Array<T> x = detail::filled("arange", shape, T{});
  for (std::size_t i = 0; i < x.size(); ++i)
    x.data()[i] = static_cast<T>(static_cast<Sum>(start) + static_cast<Sum>(step) * static_cast<Sum>(i));
  return x;
}

}  // namespace xgrad
