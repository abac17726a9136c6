#pragma once

#include <cstddef>
#include <limits>

#include <xgrad/graph/variable.hpp>

namespace xgrad {

/// The part of x at `index` along `dim`, without that axis; a negative index counts from the end.
/// https://pytorch.org/docs/stable/generated/torch.select.html
template <class T>
Variable<T> select(const Variable<T>& x, int dim, std::ptrdiff_t index);

/// Python's x[start:end:step] along `dim`: negative bounds count from the end, bounds out of range are
/// clamped. Throws ValueError for a step below 1.
template <class T>
Variable<T> slice(const Variable<T>& x, int dim, std::ptrdiff_t start,
                  std::ptrdiff_t end = std::numeric_limits<std::ptrdiff_t>::max(), std::ptrdiff_t step = 1);

}  // namespace xgrad
