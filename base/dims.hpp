#pragma once

#include <concepts>
#include <cstddef>
#include <iterator>
#include <limits>
#include <utility>

#include "array.hpp"

namespace xgrad {

namespace detail {

/// Any integer type but bool and those of characters, which mean something else.
template <class I>
concept Integer =
    std::integral<I> && !std::same_as<I, bool> && !std::same_as<I, char> && !std::same_as<I, wchar_t> &&
    !std::same_as<I, char8_t> && !std::same_as<I, char16_t> && !std::same_as<I, char32_t>;

template <class N>
concept Number = std::floating_point<N> || Integer<N>;

}  // namespace detail

/// An axis, an index or a length: an integer of any type, but no bool and no character. What is larger than
/// any length, such as n - 1 for an unsigned n of 0, stays large.
class Int {
 public:
  template <detail::Integer I>
  constexpr Int(I value) noexcept
      : value_(std::in_range<std::ptrdiff_t>(value) ? static_cast<std::ptrdiff_t>(value)
                                                    : std::numeric_limits<std::ptrdiff_t>::max()) {}
  constexpr operator std::ptrdiff_t() const noexcept { return value_; }

 private:
  std::ptrdiff_t value_;
};

/// A list of axes or lengths: `1`, `{0, 2}`, `{batch, -1}` with integers of any types, or a Shape.
class Dims {
 public:
  template <detail::Integer... I>
  requires(sizeof...(I) > 0) Dims(I... items) : items_{static_cast<std::ptrdiff_t>(Int(items))...} {}
  Dims(Int item) : items_{static_cast<std::ptrdiff_t>(item)} {}
  template <std::input_iterator I>
  Dims(I first, I last) : items_(first, last) {}
  Dims(const Shape& shape) : items_(shape.begin(), shape.end()) {}

  std::size_t size() const { return items_.size(); }
  std::ptrdiff_t operator[](std::size_t i) const { return items_[i]; }
  auto begin() const { return items_.begin(); }
  auto end() const { return items_.end(); }

 private:
  xt::svector<std::ptrdiff_t, 4> items_;
};

/// "(2, -1)".
[[nodiscard]] std::string to_string(const Dims& dims);

}  // namespace xgrad
