#pragma once

#include "../../graph/op.hpp"
#include "../../graph/variable.hpp"

namespace xgrad {

/// Of matrices (..., n, n).
template <class T>
struct EighResult {
  Variable<T> eigenvalues;   ///< w (..., n), ascending
  Variable<T> eigenvectors;  ///< V (..., n, n), the columns, of length 1
};

/// a = V diag(w) V^T for symmetric matrices, of which one triangle is read, the lower one for uplo 'L' or the
/// upper one for 'U'. da = V (diag(dw) + F o (V^T dV - dV^T V) / 2) V^T with F_ij = 1 / (w_j - w_i), 0 on the
/// diagonal: symmetric, as if both triangles were moved together; not finite if eigenvectors of equal
/// eigenvalues are used, fine if eigenvalues alone are. Eigenvectors are unique up to their sign only:
/// gradients make sense for what does not depend on it. Throws ValueError for another uplo, and if the
/// algorithm does not converge, as for nan.
/// https://pytorch.org/docs/stable/generated/torch.linalg.eigh.html
template <class T>
EighResult<T> eigh(const Variable<T>& a, char uplo = 'L');

namespace ops {

inline constexpr Op eigh("eigh", {"a"}, {"UPLO"});

}  // namespace ops
}  // namespace xgrad
