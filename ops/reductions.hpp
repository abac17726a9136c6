#pragma once

#include <xgrad/graph/dims.hpp>
#include <xgrad/graph/variable.hpp>

// Axes may be negative. keepdim leaves the reduced axes with length 1. Sums of float are accurate (blocked).
// https://pytorch.org/docs/stable/torch.html#reduction-ops

namespace xgrad {

/// The sum of all elements, a scalar; dx = dy everywhere.
template <class T>
Variable<T> sum(const Variable<T>& x);

/// The sum over some axes; dx = dy, repeated along them.
template <class T>
Variable<T> sum(const Variable<T>& x, const Dims& dims, bool keepdim = false);

/// sum / count; nan over no elements.
template <class T>
Variable<T> mean(const Variable<T>& x);
template <class T>
Variable<T> mean(const Variable<T>& x, const Dims& dims, bool keepdim = false);

}  // namespace xgrad
