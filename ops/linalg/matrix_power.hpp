#pragma once

#include "../../base/dims.hpp"
#include "../../graph/variable.hpp"

namespace xgrad {

/// y = a a ... a, n times, for matrices a (..., m, m): the identity for n = 0, powers of the inverse for a
/// negative n. By repeated squaring; da is that of the products. Throws ValueError for a singular matrix and
/// a negative n. https://pytorch.org/docs/stable/generated/torch.linalg.matrix_power.html
template <class T>
Variable<T> matrix_power(const Variable<T>& a, Int n);

}  // namespace xgrad
