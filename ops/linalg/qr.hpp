#pragma once

#include "../../graph/op.hpp"
#include "../../graph/variable.hpp"

namespace xgrad {

/// Shapes of Q and R of qr(), for matrices (m, n) and k = min(m, n).
enum class QrMode {
  reduced,   ///< Q (m, k) and R (k, n)
  complete,  ///< Q (m, m) and R (m, n)
  r          ///< an undefined Q and R (k, n)
};

template <class T>
struct [[nodiscard]] QrResult {
  Variable<T> Q;  ///< with orthonormal columns
  Variable<T> R;  ///< 0 below the diagonal
};

/// a = Q R for matrices a (..., m, n). For m >= n da = (dQ + Q copyltu(M)) R^-T with M = R dR^T - dQ^T Q and
/// copyltu(M) = tril(M) + tril(M, -1)^T; for m < n Q is from the first m columns, and the rest of R is Q^T
/// times the other columns. Requires the first min(m, n) columns to be linearly independent. The gradient of
/// a complete Q with m > n is not defined: backward throws GraphError.
///
/// Walter and Lehmann, Algorithmic differentiation of linear algebra functions (2012), arXiv:1009.6112;
/// https://pytorch.org/docs/stable/generated/torch.linalg.qr.html
template <class T>
QrResult<T> qr(const Variable<T>& a, QrMode mode = QrMode::reduced);

namespace ops {

inline constexpr Op qr("qr", {"a"}, {"mode"});

}  // namespace ops
}  // namespace xgrad
