#pragma once

#include <optional>

#include "../../base/detail/by_name.hpp"
#include "../../base/dims.hpp"
#include "../../graph/op.hpp"
#include "../../graph/variable.hpp"

namespace xgrad {

/// Result of svd for matrices (..., m, n), with k = min(m, n).
template <class T>
struct [[nodiscard]] SvdResult {
  Variable<T> U;   ///< (..., m, m), or (..., m, k)
  Variable<T> S;   ///< the singular values (..., k), descending
  Variable<T> Vh;  ///< (..., n, n), or (..., k, n)
};

struct SvdOptions {
  detail::ByName by_name = {};
  bool full_matrices = true;  ///< all columns of U and rows of Vh, not only k
};

/// a = U diag(S) Vh, with orthonormal columns of U and rows of Vh; all m and n of them if `full_matrices`,
/// where those beyond k have no gradient. With U and V the first k,
///
///   da = U [ (X_U / E) diag(S) + diag(S) (X_V / E) + diag(dS) ] V^T + (1 - U U^T) dU S^-1 V^T + U S^-1 dV^T
///   (1 - V V^T),
///
/// X_U = U^T dU - dU^T U, X_V = V^T dV - dV^T V, E_ij = S_j^2 - S_i^2, 1 on the diagonal. Gradients through
/// vectors of equal singular values are not finite; those through singular values alone are. Vectors are
/// unique only up to a common sign: gradients are meaningful only for functions that do not depend on it.
/// Throws ValueError if the algorithm does not converge, as for nan.
/// https://pytorch.org/docs/stable/generated/torch.linalg.svd.html
template <class T>
SvdResult<T> svd(const Variable<T>& a, SvdOptions options = {});

/// The pseudo-inverse p (..., n, m) of matrices a (..., m, n): V diag(1/S) U^T over the singular values above
/// rtol times the largest; the default rtol is max(m, n) epsilon. Where the rank of a is constant, da = (1 -
/// a p) dp^T p p^T + p^T p dp^T (1 - p a) - p^T dp p^T. Throws ValueError for a negative rtol.
///
/// Golub and Pereyra, The differentiation of pseudo-inverses and nonlinear least squares problems whose
/// variables separate (1973); https://pytorch.org/docs/stable/generated/torch.linalg.pinv.html
template <class T>
Variable<T> pinv(const Variable<T>& a, std::optional<double> rtol = std::nullopt);

namespace ops {

inline constexpr Op svd("svd", {"a"}, {"full_matrices"});
inline constexpr Op pinv("pinv", {"a"}, {"rtol"});

}  // namespace ops
}  // namespace xgrad
