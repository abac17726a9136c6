#pragma once

#include <cstddef>

namespace xgrad::kernels {

/// y (contiguous, of `out_shape`) = x read with `in_strides`, in elements: 0 expands an axis, and any value
/// is fine, so this copies transposes, slices and expansions. x points at the first element read.
template <typename T>
void permute(std::size_t rank, const std::size_t* out_shape, const std::ptrdiff_t* in_strides, const T* x,
             T* y);

/// The reverse: y[sum of index * out_strides] += x[index] over x (contiguous, of `in_shape`). y is not
/// cleared.
template <typename T>
void scatter_add(std::size_t rank, const std::size_t* in_shape, const std::ptrdiff_t* out_strides, const T* x,
                 T* y);

}  // namespace xgrad::kernels
