#pragma once

#include <initializer_list>

#include "../../base/dims.hpp"
#include "../../graph/op.hpp"
#include "../../graph/variable.hpp"

// The same elements in another shape or order; gradients are rearranged back. Results are copies, never
// views. https://pytorch.org/docs/stable/torch.html#indexing-slicing-joining-mutating-ops

namespace xgrad {

/// The elements in row-major order with another shape; one length may be -1 and is inferred. Throws
/// ShapeError unless the shape has as many elements as x.
template <class T>
Variable<T> reshape(const Variable<T>& x, const Dims& shape);

namespace detail {

/// `shape` with its -1, if any, replaced by the length that makes the count of elements come out.
Shape reshaped(const Shape& from, const Dims& shape);

}  // namespace detail

/// The same of an array or an expression, such as Ids or a Mask.
template <class E>
[[nodiscard]] Array<typename E::value_type> reshape(const xt::xexpression<E>& x, const Dims& shape) {
  Array<typename E::value_type> y(x);
  y.reshape(detail::reshaped(y.shape(), shape));
  return y;
}

/// Axis k of the result is axis dims[k] of x; dims contains each axis once.
template <class T>
Variable<T> permute(const Variable<T>& x, const Dims& dims);

/// Swaps two axes. Throws IndexError for a missing axis.
template <class T>
Variable<T> transpose(const Variable<T>& x, Int dim0, Int dim1);

/// Swaps the last two axes: transposes each matrix of a batch (torch.Tensor.mT). Throws ShapeError for fewer
/// than two axes.
template <class T>
Variable<T> mT(const Variable<T>& x);

/// Merges axes start_dim to end_dim, both included; a scalar becomes (1).
template <class T>
Variable<T> flatten(const Variable<T>& x, Int start_dim = 0, Int end_dim = -1);

/// Inserts an axis of length 1 at `dim`, which may be x's rank.
template <class T>
Variable<T> unsqueeze(const Variable<T>& x, Int dim);

/// Removes the axes of length 1, or the axis `dim` if its length is 1.
template <class T>
Variable<T> squeeze(const Variable<T>& x);
template <class T>
Variable<T> squeeze(const Variable<T>& x, Int dim);

/// Broadcasts x to a shape, where -1 keeps x's length; new axes may precede. dx is summed over the added and
/// stretched axes.
template <class T>
Variable<T> expand(const Variable<T>& x, const Dims& shape);

/// Joins arrays along `dim`; the other lengths must agree. Skips parts of shape (0), as PyTorch does.
template <class T>
Variable<T> cat(const std::vector<Variable<T>>& parts, Int dim = 0);
template <class T>
Variable<T> cat(std::initializer_list<Variable<T>> parts, Int dim = 0) {
  return cat(std::vector<Variable<T>>(parts), dim);
}

/// Joins arrays of one shape along a new axis at `dim`.
template <class T>
Variable<T> stack(const std::vector<Variable<T>>& parts, Int dim = 0);
template <class T>
Variable<T> stack(std::initializer_list<Variable<T>> parts, Int dim = 0) {
  return stack(std::vector<Variable<T>>(parts), dim);
}

/// Splits x along `dim` into parts of these lengths, which must add up to its length; or into parts of one
/// length, the last of which may be shorter.
template <class T>
[[nodiscard]] std::vector<Variable<T>> split(const Variable<T>& x, const std::vector<std::ptrdiff_t>& lengths,
                                             Int dim = 0);
template <class T>
[[nodiscard]] std::vector<Variable<T>> split(const Variable<T>& x,
                                             std::initializer_list<std::ptrdiff_t> lengths, Int dim = 0) {
  return split(x, std::vector<std::ptrdiff_t>(lengths), dim);
}
template <class T>
[[nodiscard]] std::vector<Variable<T>> split(const Variable<T>& x, Int length, Int dim = 0);

namespace ops {

inline constexpr Op reshape("reshape", {"x"}, {"shape"});
inline constexpr Op permute("permute", {"x"}, {"dims"});
inline constexpr Op cat("cat", {"parts"}, {"dim"});
inline constexpr Op stack("stack", {"parts"}, {"dim"});

}  // namespace ops
}  // namespace xgrad
