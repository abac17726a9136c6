#pragma once

#include "../../graph/op.hpp"
#include "../../graph/variable.hpp"

namespace xgrad {

/// y = value where mask is true, else x; x and mask broadcast to y's shape. dx = dy, exactly 0 where mask is
/// true. Throws ShapeError if the shapes do not broadcast.
/// https://pytorch.org/docs/stable/generated/torch.Tensor.masked_fill.html
template <class T>
Variable<T> masked_fill(const Variable<T>& x, const Mask& mask, std::type_identity_t<T> value);
/// A mask is of bool: compare the numbers.
template <class T, detail::NoMask E>
Variable<T> masked_fill(const Variable<T>& x, const E& mask, std::type_identity_t<T> value) = delete;

namespace ops {

inline constexpr Op masked_fill("masked_fill", {"x"}, {"mask", "value"});

}  // namespace ops
}  // namespace xgrad
