#pragma once

#include "../../graph/variable.hpp"

namespace xgrad {

/// The X (..., n, k) for which |a X - b| is smallest, column by column, for matrices a (..., m, n) of full
/// rank and b
/// (..., m, k); where several are, as for m < n, the one that is smallest itself. Batch axes broadcast. Made
/// of qr() and solve_triangular(): X = R^-1 Q^T b for a = Q R, or Q R^-T b for a^T = Q R, and so are its
/// gradients. Throws ValueError, with the batch's index, for columns (rows for m < n) that are linearly
/// dependent. https://pytorch.org/docs/stable/generated/torch.linalg.lstsq.html
template <class T>
Variable<T> lstsq(const Variable<T>& a, const Variable<T>& b);

}  // namespace xgrad
