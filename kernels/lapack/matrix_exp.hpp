#pragma once

#include <cstddef>

namespace xgrad::kernels {

/// y (n, n) = e^A: A is halved until its 1-norm is small, e^A then a quotient of polynomials, which is
/// squared as often. Higham, The scaling and squaring method for the matrix exponential revisited (2005).
template <typename T>
void matrix_exp(const T* a, T* y, std::size_t n);

}  // namespace xgrad::kernels
