#pragma once

#include "../../graph/op.hpp"
#include "../../graph/variable.hpp"

namespace xgrad {

/// Result of slogdet, of shape (...) for matrices (..., n, n).
template <class T>
struct [[nodiscard]] SlogdetResult {
  Variable<T> sign;       ///< of the determinant, 0 for a singular matrix; it has no gradient
  Variable<T> logabsdet;  ///< log |det a|, -inf for a singular matrix
};

/// Sign and logarithm of the absolute value of the determinant, which neither overflow nor underflow; da = dy
/// a^-T. https://pytorch.org/docs/stable/generated/torch.linalg.slogdet.html
template <class T>
SlogdetResult<T> slogdet(const Variable<T>& a);

/// log(det a) of matrices (..., n, n): nan where the determinant is negative, -inf where it is 0; da = dy
/// a^-T. https://pytorch.org/docs/stable/generated/torch.logdet.html
template <class T>
Variable<T> logdet(const Variable<T>& a);

/// The determinant of matrices (..., n, n): (...). da = dy times the cofactors: for n up to 3 as polynomials,
/// with derivatives of any order; for larger n as y a^-T, or from the singular values if a is singular: then
/// only without create_graph, under which gradients are nan.
/// https://pytorch.org/docs/stable/generated/torch.linalg.det.html
template <class T>
Variable<T> det(const Variable<T>& a);

namespace ops {

inline constexpr Op det("det", {"a"});
inline constexpr Op slogdet("slogdet", {"a"});
inline constexpr Op logdet("logdet", {"a"});

}  // namespace ops
}  // namespace xgrad
