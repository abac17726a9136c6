#pragma once

#include <cstddef>

namespace xgrad::kernels {

/// y (contiguous, of `out_shape`) = x read with `in_strides`, in elements: 0 expands an axis, and any value
/// is fine, so this copies transposes, slices and expansions. x points at the first element read.
template <typename T>
void permute(std::size_t rank, const std::size_t* out_shape, const std::ptrdiff_t* in_strides, const T* x,
             T* y);

/// y[r * y_stride + c] = x[r * x_stride + c] for `rows` rows of `cols` elements.
template <typename T>
void copy_rows(const T* x, std::ptrdiff_t x_stride, T* y, std::ptrdiff_t y_stride, std::size_t rows,
               std::size_t cols);

/// The reverse of permute: y[sum of index * out_strides] += x[index] over x (contiguous, of `in_shape`), each
/// index to an element of its own. y is not cleared.
template <typename T>
void scatter_add(std::size_t rank, const std::size_t* in_shape, const std::ptrdiff_t* out_strides, const T* x,
                 T* y);

}  // namespace xgrad::kernels
