#pragma once

#include <cstddef>

namespace xgrad::kernels {

/// y (outer, inner) = sum over the middle axis of x (outer, n, inner); an empty sum is 0.
template <typename T>
void sum_middle(const T* x, std::size_t outer, std::size_t n, std::size_t inner, T* y);

/// y (outer, inner) = maximum over the middle axis of x (outer, n, inner). nan wins; an empty maximum is
/// -inf.
template <typename T>
void max_middle(const T* x, std::size_t outer, std::size_t n, std::size_t inner, T* y);

/// sum of a[i] b[i], in double.
template <typename T>
double dot(const T* a, const T* b, std::size_t n);

/// sum of x[i]^2, in double: no float overflows on the way.
template <typename T>
double squared_norm(const T* x, std::size_t n);

/// The gradient of broadcasting: y[sum of index * y_strides] += x[index] over x (contiguous, of `shape`),
/// where y (`y_size` elements) starts as zeros. A stride is 0 on each axis that is summed away.
template <typename T>
void sum_broadcast(std::size_t rank, const std::size_t* shape, const T* x, const std::ptrdiff_t* y_strides,
                   T* y, std::size_t y_size);

}  // namespace xgrad::kernels
