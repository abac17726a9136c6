#pragma once

#include "../../base/detail/by_name.hpp"
#include "../../base/dims.hpp"
#include "../../graph/op.hpp"
#include "../../graph/variable.hpp"

namespace xgrad {

struct CholeskyOptions {
  detail::ByName by_name = {};
  bool upper = false;  ///< the factor L^T instead of L
};

/// L with a = L L^T and 0 above the diagonal, for symmetric positive-definite matrices a (..., n, n); or L^T
/// if `upper`. Only the lower triangle of a is read. The gradient is symmetric, as for a joint change of both
/// triangles: da = L^-T P L^-1 with P = (S + tril(S, -1)^T) / 2 and S = tril(L^T dL). Throws ValueError, with
/// the batch's index, for a matrix that is not positive-definite.
///
/// Murray, Differentiation of the Cholesky decomposition (2016), arXiv:1602.07527;
/// https://pytorch.org/docs/stable/generated/torch.linalg.cholesky.html
template <class T>
Variable<T> cholesky(const Variable<T>& a, CholeskyOptions options = {});

namespace ops {

inline constexpr Op cholesky("cholesky", {"a"});

}  // namespace ops
}  // namespace xgrad
