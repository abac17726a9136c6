#pragma once

#include <cstddef>
#include <iosfwd>
#include <optional>
#include <string>

#include "../base/array.hpp"
#include "variable.hpp"

// Arrays and Variables as PyTorch prints tensors:
//
//   tensor([[ 0.1000, -2.0000],
//           [ 3.5000,  0.0000]], grad_fn=<add>)
//
// All elements have the same number of digits; large or small ones, or a range of more than 1000, are shown
// in scientific notation, whole numbers as "1.". A Variable that an op made ends with the op's name (of the
// last one, if it is made of several), a leaf with requires_grad=True, and doubles with dtype=float64,
// without PyTorch's "torch.". https://pytorch.org/docs/stable/generated/torch.set_printoptions.html

namespace xgrad {

struct PrintOptions {
  int precision = 4;                  ///< digits after the point
  std::size_t threshold = 1000;       ///< of more elements than this, only those at the edges are shown:
  std::size_t edgeitems = 3;          ///< so many at each end of an axis
  std::size_t linewidth = 80;         ///< characters
  std::optional<bool> sci_mode = {};  ///< scientific notation always or never; by default where it is needed
};

/// What arrays are printed with from now on, in all threads. Throws ValueError for a precision outside of
/// [0, 100].
void set_print_options(const PrintOptions& options);
/// The options in use.
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
