#pragma once

#include <cstddef>

#include "../../base/dims.hpp"
#include "../../graph/op.hpp"
#include "../../graph/variable.hpp"

namespace xgrad {

/// The elements x[..., i, ..., i + offset, ...] of the axes dim1 and dim2, which a new last axis replaces:
/// the main diagonal of matrices, or the one `offset` columns to its right (left if negative). Empty if the
/// offset exceeds x. dx = dy there, 0 elsewhere. Throws IndexError for a missing axis, ValueError for the
/// same axis twice. https://pytorch.org/docs/stable/generated/torch.diagonal.html
template <class T>
Variable<T> diagonal(const Variable<T>& x, Int offset = 0, Int dim1 = 0, Int dim2 = 1);

/// Arrays with the last axis of x as their diagonal between the new axes dim1 and dim2, and 0 elsewhere:
/// (..., n) becomes (..., n + |offset|, n + |offset|). dx = the diagonal of dy.
/// https://pytorch.org/docs/stable/generated/torch.diag_embed.html
template <class T>
Variable<T> diag_embed(const Variable<T>& x, Int offset = 0, Int dim1 = -2, Int dim2 = -1);

/// The diagonal of a matrix, or the matrix with a vector as its diagonal. Throws ShapeError for other ranks.
/// https://pytorch.org/docs/stable/generated/torch.diag.html
template <class T>
Variable<T> diag(const Variable<T>& x, Int diagonal = 0);

/// The sum of the diagonals of matrices (..., m, n): (...).
/// https://pytorch.org/docs/stable/generated/torch.trace.html
template <class T>
Variable<T> trace(const Variable<T>& x);

namespace ops {

inline constexpr Op diagonal("diagonal", {"x"}, {"offset", "dim1", "dim2"});
inline constexpr Op diag_embed("diag_embed", {"x"}, {"offset", "dim1", "dim2"});

}  // namespace ops
}  // namespace xgrad
