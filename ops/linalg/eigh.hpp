#pragma once

#include "../../base/detail/by_name.hpp"
#include "../../base/dims.hpp"
#include "../../graph/op.hpp"
#include "../../graph/variable.hpp"

namespace xgrad {

/// Result of eigh for matrices (..., n, n).
template <class T>
struct [[nodiscard]] EighResult {
  Variable<T> eigenvalues;   ///< w (..., n), ascending
  Variable<T> eigenvectors;  ///< V (..., n, n), in columns of length 1
};

struct EighOptions {
  detail::ByName by_name = {};
  bool upper = false;  ///< read the upper triangle instead of the lower one
};

/// a = V diag(w) V^T for symmetric matrices, of which only one triangle is read. da = V (diag(dw) + F o (V^T
/// dV - dV^T V) / 2) V^T with F_ij = 1 / (w_j - w_i), 0 on the diagonal: symmetric, as for a joint change of
/// both triangles. Gradients through eigenvectors of equal eigenvalues are not finite; those through
/// eigenvalues alone are. Eigenvectors are unique only up to their sign: gradients are meaningful only for
/// functions that do not depend on it. Throws ValueError if the algorithm does not converge, as for nan.
/// https://pytorch.org/docs/stable/generated/torch.linalg.eigh.html
template <class T>
EighResult<T> eigh(const Variable<T>& a, EighOptions options = {});

namespace ops {

inline constexpr Op eigh("eigh", {"a"}, {"UPLO"});

}  // namespace ops
}  // namespace xgrad
