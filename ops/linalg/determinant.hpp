#pragma once

#include "../../graph/op.hpp"
#include "../../graph/variable.hpp"

namespace xgrad {

/// Of matrices (..., n, n): (...).
template <class T>
struct SlogdetResult {
  Variable<T> sign;       ///< of the determinant, 0 for a singular matrix; it has no gradient
  Variable<T> logabsdet;  ///< log |det a|, -inf for a singular matrix
};

/// The determinant as its sign and the logarithm of its absolute value, which neither overflow nor underflow;
/// da = dy a^-T. https://pytorch.org/docs/stable/generated/torch.linalg.slogdet.html
template <class T>
SlogdetResult<T> slogdet(const Variable<T>& a);

/// log(det a) of matrices (..., n, n): nan where the determinant is negative, -inf where it is 0; da = dy
/// a^-T. https://pytorch.org/docs/stable/generated/torch.logdet.html
template <class T>
Variable<T> logdet(const Variable<T>& a);

/// The determinant of matrices (..., n, n): (...). da = dy times the cofactors: polynomials for n up to 3,
/// and of any order; y a^-T for larger ones, from the singular values where a is singular: there without
/// create_graph only, under which gradients come out as nan.
/// https://pytorch.org/docs/stable/generated/torch.linalg.det.html
template <class T>
Variable<T> det(const Variable<T>& a);

namespace ops {

inline constexpr Op det("det", {"a"});
inline constexpr Op slogdet("slogdet", {"a"});
inline constexpr Op logdet("logdet", {"a"});

}  // namespace ops
}  // namespace xgrad
