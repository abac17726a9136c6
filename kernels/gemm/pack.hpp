#pragma once

#include "../matrix.hpp"

namespace xgrad::kernels {

/// packed (rows, cols) = matrix.
template <typename T>
void pack(const Matrix<const T>& matrix, T* packed);

}  // namespace xgrad::kernels
