#pragma once

#include <concepts>
#include <cstddef>
#include <cstdint>
#include <iosfwd>
#include <optional>
#include <string>
#include <type_traits>

#include "array.hpp"
#include "detail/arrays/expression.hpp"
#include "detail/by_name.hpp"

// Prints arrays as PyTorch prints tensors:
//
//   tensor([[ 0.1000, -2.0000],
//           [ 3.5000,  0.0000]])
//
// All elements have the same number of digits; large or small ones, or a range of more than 1000, are shown
// in scientific notation, whole numbers as "1.". Doubles end with dtype=float64, without PyTorch's "torch.".
// https://pytorch.org/docs/stable/generated/torch.set_printoptions.html

namespace xgrad {

struct PrintOptions {
  detail::ByName by_name = {};
  int precision = 4;                  ///< digits after the decimal point
  std::size_t threshold = 1000;       ///< arrays with more elements are summarized
  std::size_t edgeitems = 3;          ///< elements shown at each end of a summarized axis
  std::size_t linewidth = 80;         ///< in characters
  std::optional<bool> sci_mode = {};  ///< scientific notation always or never; default: where needed
};

/// Sets the print options of all threads. Throws ValueError for a precision outside [0, 100].
void set_print_options(const PrintOptions& options);
/// The current print options.
PrintOptions print_options();

/// The text that operator<< prints.
[[nodiscard]] std::string to_string(const Array<float>& x);
[[nodiscard]] std::string to_string(const Array<double>& x);
[[nodiscard]] std::string to_string(const Ids& x);
[[nodiscard]] std::string to_string(const Mask& x);

std::ostream& operator<<(std::ostream& out, const Array<float>& x);
std::ostream& operator<<(std::ostream& out, const Array<double>& x);
std::ostream& operator<<(std::ostream& out, const Ids& x);
std::ostream& operator<<(std::ostream& out, const Mask& x);

namespace detail {

/// The arrays that expressions are printed as: those of integers as Ids.
template <class V>
using Printed = Array<std::conditional_t<std::integral<V> && !std::same_as<V, bool>, std::int64_t, V>>;

template <class E>
concept PrintedExpression = is_expression<E> &&
    (Real<typename E::value_type> || std::integral<typename E::value_type>);

}  // namespace detail

/// An expression is evaluated and printed as an array.
template <detail::PrintedExpression E>
[[nodiscard]] std::string to_string(const E& x) {
  return to_string(detail::Printed<typename E::value_type>(x));
}
template <detail::PrintedExpression E>
std::ostream& operator<<(std::ostream& out, const E& x) {
  return out << detail::Printed<typename E::value_type>(x);
}

namespace detail {

/// "tensor(elements, suffix)"; without a comma if the suffix is empty.
template <class T>
std::string tensor_text(const Array<T>& x, const std::string& suffix = "");

}  // namespace detail
}  // namespace xgrad
