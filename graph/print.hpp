#pragma once

#include <iosfwd>
#include <string>

#include "../base/print.hpp"
#include "variable.hpp"

namespace xgrad {

/// As its array is printed; the result of an op ends with grad_fn and the op's name (of the last op, if
/// composed), a leaf with requires_grad=True. "undefined" for a Variable without a value.
///
///   tensor([[ 0.1000, -2.0000],
///           [ 3.5000,  0.0000]], grad_fn=<add>)
template <class T>
[[nodiscard]] std::string to_string(const Variable<T>& x);

template <class T>
std::ostream& operator<<(std::ostream& out, const Variable<T>& x);

}  // namespace xgrad
