#pragma once

#include <cstddef>

namespace xgrad::kernels {

// y[i] = f(x[i]) for i < n; y may be x. nan passes through every function. These are calls of <cmath>, and
// loops of their own where it has no such function.

template <typename T>
void tan(const T* x, T* y, std::size_t n);
template <typename T>
void asin(const T* x, T* y, std::size_t n);
template <typename T>
void acos(const T* x, T* y, std::size_t n);
template <typename T>
void atan(const T* x, T* y, std::size_t n);
template <typename T>
void sinh(const T* x, T* y, std::size_t n);
template <typename T>
void cosh(const T* x, T* y, std::size_t n);
template <typename T>
void asinh(const T* x, T* y, std::size_t n);
template <typename T>
void acosh(const T* x, T* y, std::size_t n);
template <typename T>
void atanh(const T* x, T* y, std::size_t n);
template <typename T>
void exp2(const T* x, T* y, std::size_t n);
template <typename T>
void log2(const T* x, T* y, std::size_t n);
template <typename T>
void log10(const T* x, T* y, std::size_t n);
template <typename T>
void erfc(const T* x, T* y, std::size_t n);
template <typename T>
void erfinv(const T* x, T* y, std::size_t n);
/// ln |Gamma(x)|.
template <typename T>
void lgamma(const T* x, T* y, std::size_t n);

/// The derivative number `order` of digamma, the derivative of ln Gamma(x); digamma itself for 0.
template <typename T>
void polygamma(const T* x, T* y, std::size_t n, unsigned order);

}  // namespace xgrad::kernels
