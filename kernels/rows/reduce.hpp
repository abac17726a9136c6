#pragma once

#include <cstddef>

namespace xgrad::kernels {

/// y (outer, inner) = sum over the middle axis of x (outer, n, inner); an empty sum is 0.
template <typename T>
void sum_middle(const T* x, std::size_t outer, std::size_t n, std::size_t inner, T* y);

/// The same for the largest and the smallest; nan if any is. n must not be 0.
template <typename T>
void max_middle(const T* x, std::size_t outer, std::size_t n, std::size_t inner, T* y);
template <typename T>
void min_middle(const T* x, std::size_t outer, std::size_t n, std::size_t inner, T* y);

/// The same for products, in double: no float overflows on the way. An empty product is 1.
template <typename T>
void product_middle(const T* x, std::size_t outer, std::size_t n, std::size_t inner, T* y);

/// The same for sqrt(sum of x^2), in double.
template <typename T>
void norm_middle(const T* x, std::size_t outer, std::size_t n, std::size_t inner, T* y);

/// dx (outer, n, inner) = dy (outer, inner) times the product of the other elements along the middle axis, in
/// double.
template <typename T>
void product_middle_grad(const T* dy, const T* x, std::size_t outer, std::size_t n, std::size_t inner, T* dx);

/// sum of x[i]^2, in double: no float overflows on the way.
template <typename T>
double squared_norm(const T* x, std::size_t n);

/// sum of a[i] b[i], in double.
template <typename T>
double dot(const T* a, const T* b, std::size_t n);

}  // namespace xgrad::kernels
