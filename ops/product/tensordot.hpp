#pragma once

#include "../../base/dims.hpp"
#include "../../graph/variable.hpp"

namespace xgrad {

/// y[i, j] = a[i] b[j] for vectors. Throws ShapeError for others.
/// https://pytorch.org/docs/stable/generated/torch.outer.html
template <class T>
Variable<T> outer(const Variable<T>& a, const Variable<T>& b);

/// The sum over axes of a and of b, which are given pairwise, of products of their elements; y has the other
/// axes of a, then those of b. Without lists, the sum over the last `dims` axes of a and the first of b.
/// Throws ShapeError if the lengths of two axes differ, IndexError for a missing axis, ValueError for lists
/// of different lengths. https://pytorch.org/docs/stable/generated/torch.tensordot.html
template <class T>
Variable<T> tensordot(const Variable<T>& a, const Variable<T>& b, Int dims = 2);
template <class T>
Variable<T> tensordot(const Variable<T>& a, const Variable<T>& b, const Dims& dims_a, const Dims& dims_b);

/// The cross products of vectors with three elements along `dim`: y0 = a1 b2 - a2 b1, and so on; the other
/// axes broadcast. Throws ShapeError for another length.
/// https://pytorch.org/docs/stable/generated/torch.linalg.cross.html
template <class T>
Variable<T> cross(const Variable<T>& a, const Variable<T>& b, Int dim = -1);

}  // namespace xgrad
