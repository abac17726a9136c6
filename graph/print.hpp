#pragma once

#include <cstddef>
#include <iosfwd>
#include <optional>
#include <string>

#include "../base/array.hpp"
#include "variable.hpp"

// Prints arrays and Variables as PyTorch prints tensors:
//
//   tensor([[ 0.1000, -2.0000],
//           [ 3.5000,  0.0000]], grad_fn=<add>)
//
// All elements have the same number of digits; large or small ones, or a range of more than 1000, are shown
// in scientific notation, whole numbers as "1.". The result of an op ends with grad_fn and the op's name (of
// the last op, if composed), a leaf with requires_grad=True, and doubles with dtype=float64, without
// PyTorch's "torch.". https://pytorch.org/docs/stable/generated/torch.set_printoptions.html

namespace xgrad {

struct PrintOptions {
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

/// "undefined" for a Variable without a value.
template <class T>
std::string to_string(const Variable<T>& x);

std::ostream& operator<<(std::ostream& out, const Array<float>& x);
std::ostream& operator<<(std::ostream& out, const Array<double>& x);
std::ostream& operator<<(std::ostream& out, const Ids& x);
std::ostream& operator<<(std::ostream& out, const Mask& x);
template <class T>
std::ostream& operator<<(std::ostream& out, const Variable<T>& x);

}  // namespace xgrad
