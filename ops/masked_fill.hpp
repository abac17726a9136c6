#pragma once

#include "../graph/variable.hpp"

namespace xgrad {

/// `value` where mask is true, else x; x and mask broadcast. dx is exactly 0 where masked.
/// https://pytorch.org/docs/stable/generated/torch.Tensor.masked_fill.html
template <class T>
Variable<T> masked_fill(const Variable<T>& x, const Mask& mask, std::type_identity_t<T> value);

}  // namespace xgrad
