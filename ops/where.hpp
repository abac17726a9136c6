#pragma once

#include <xgrad/graph/variable.hpp>

namespace xgrad {

/// y = a where condition is true, else b; all three broadcast. The gradient of the one that was not chosen is
/// exactly 0, whatever its value there. https://pytorch.org/docs/stable/generated/torch.where.html
template <class T>
Variable<T> where(const Mask& condition, const Variable<T>& a, const Variable<T>& b);

}  // namespace xgrad
