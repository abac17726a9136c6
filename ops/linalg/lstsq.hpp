#pragma once

#include "../../graph/variable.hpp"

namespace xgrad {

/// X (..., n, k) that minimizes |a X - b|, column by column, for matrices a (..., m, n) of full rank and b
/// (..., m, k); the minimum-norm solution if there are several, as for m < n. Batch axes broadcast. Composed
/// of qr() and solve_triangular(): X = R^-1 Q^T b for a = Q R, or Q R^-T b for a^T = Q R, and so are its
/// gradients. Throws ValueError, with the batch's index, for linearly dependent columns (rows for m < n).
/// https://pytorch.org/docs/stable/generated/torch.linalg.lstsq.html
template <class T>
Variable<T> lstsq(const Variable<T>& a, const Variable<T>& b);

}  // namespace xgrad
