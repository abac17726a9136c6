#pragma once

#include <initializer_list>

#include "../../base/dims.hpp"
#include "../../graph/op.hpp"
#include "../../graph/variable.hpp"

// The same elements in another shape or order; gradients take the way back. Results are copies, never views.
// https://pytorch.org/docs/stable/torch.html#indexing-slicing-joining-mutating-ops

namespace xgrad {

/// The elements in row-major order under another shape; one length may be -1 and is inferred. Throws
/// ShapeError unless the shape has as many elements as x.
template <class T>
Variable<T> reshape(const Variable<T>& x, const Dims& shape);

/// Axis k of the result is axis dims[k] of x; dims names each axis once.
template <class T>
Variable<T> permute(const Variable<T>& x, const Dims& dims);

/// Two axes swapped. Throws IndexError for an axis that x does not have.
template <class T>
Variable<T> transpose(const Variable<T>& x, int dim0, int dim1);

/// The last two axes swapped: each matrix of a batch transposed (torch.Tensor.mT). Throws ShapeError unless
/// there are two.
template <class T>
Variable<T> mT(const Variable<T>& x);

/// Axes start_dim to end_dim, both included, merged into one; a scalar becomes (1).
template <class T>
Variable<T> flatten(const Variable<T>& x, int start_dim = 0, int end_dim = -1);

/// With an axis of length 1 put at `dim`, which may be x's rank, too.
template <class T>
Variable<T> unsqueeze(const Variable<T>& x, int dim);

/// Without its axes of length 1, or without the axis `dim` if its length is 1.
template <class T>
Variable<T> squeeze(const Variable<T>& x);
template <class T>
Variable<T> squeeze(const Variable<T>& x, int dim);

/// Broadcast to a shape, where -1 keeps x's length; new axes may come in front. dx is summed over what was
/// added.
template <class T>
Variable<T> expand(const Variable<T>& x, const Dims& shape);

/// Joined along `dim`; the other lengths must agree. A part of shape (0) is left out, as in PyTorch.
template <class T>
Variable<T> cat(const std::vector<Variable<T>>& parts, int dim = 0);
template <class T>
Variable<T> cat(std::initializer_list<Variable<T>> parts, int dim = 0) {
  return cat(std::vector<Variable<T>>(parts), dim);
}

/// Arrays of one shape, joined along a new axis at `dim`.
template <class T>
Variable<T> stack(const std::vector<Variable<T>>& parts, int dim = 0);
template <class T>
Variable<T> stack(std::initializer_list<Variable<T>> parts, int dim = 0) {
  return stack(std::vector<Variable<T>>(parts), dim);
}

/// Cut along `dim` into pieces of these lengths, which must add up to its length; or into pieces of one
/// length, of which the last may be shorter.
template <class T>
std::vector<Variable<T>> split(const Variable<T>& x, const std::vector<std::ptrdiff_t>& lengths, int dim = 0);
template <class T>
std::vector<Variable<T>> split(const Variable<T>& x, std::ptrdiff_t length, int dim = 0);

namespace ops {

inline constexpr Op reshape("reshape", {"x"}, {"shape"});
inline constexpr Op permute("permute", {"x"}, {"dims"});
inline constexpr Op cat("cat", {"parts"}, {"dim"});
inline constexpr Op stack("stack", {"parts"}, {"dim"});

}  // namespace ops
}  // namespace xgrad
