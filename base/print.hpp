#pragma once

#include <cstddef>
#include <iosfwd>
#include <optional>
#include <string>

#include "array.hpp"
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
std::string to_string(const Array<float>& x);
std::string to_string(const Array<double>& x);
std::string to_string(const Ids& x);
std::string to_string(const Mask& x);

std::ostream& operator<<(std::ostream& out, const Array<float>& x);
std::ostream& operator<<(std::ostream& out, const Array<double>& x);
std::ostream& operator<<(std::ostream& out, const Ids& x);
std::ostream& operator<<(std::ostream& out, const Mask& x);
namespace detail {

/// "tensor(elements, suffix)"; without a comma if the suffix is empty.
template <class T>
std::string tensor_text(const Array<T>& x, const std::string& suffix = "");

}  // namespace detail
}  // namespace xgrad
