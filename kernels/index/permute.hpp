#pragma once

#include "../matrix.hpp"

namespace xgrad::kernels {

/// y (contiguous, of `shape`) = x read with its strides, any of which are fine, so this copies transposes,
/// slices and expansions. x.data points at the first element read.
template <typename T>
void permute(Lengths shape, const Strided<const T>& x, T* y);

/// y (outer, n, inner) = x (outer, inner), n times; on one thread.
template <typename T>
void repeat_middle(const T* x, std::size_t outer, std::size_t n, std::size_t inner, T* y);

/// y = x, both of `shape` and walked with their strides; y's last is 1.
template <typename T>
void copy(Lengths shape, const Strided<const T>& x, const Strided<T>& y);

/// y = x, neither of which is transposed.
template <typename T>
void copy_rows(const Matrix<const T>& x, const Matrix<T>& y);

/// The reverse of permute: what y's strides reach += x (contiguous, of `shape`), each index an element of its
/// own. y is not cleared.
template <typename T>
void scatter_add(Lengths shape, const T* x, const Strided<T>& y);

}  // namespace xgrad::kernels
