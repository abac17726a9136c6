#pragma once

#include <cstddef>
#include <type_traits>

namespace xgrad::kernels {

// Same shape: y[i] = a[i] op b[i]; y may be a or b.

template <typename T>
void add(const T* a, const T* b, T* y, std::size_t n);
template <typename T>
void sub(const T* a, const T* b, T* y, std::size_t n);
template <typename T>
void mul(const T* a, const T* b, T* y, std::size_t n);
template <typename T>
void div(const T* a, const T* b, T* y, std::size_t n);

enum class Binary { add, sub, mul, div };

/// Broadcasting: y (contiguous, of `shape`) = a op b. Strides count elements and are 0 on a broadcast axis.
/// The arrays of sizes and strides hold `rank` numbers each; rank 0 is a scalar.
template <typename T>
void binary(Binary op, std::size_t rank, const std::size_t* shape, const T* a,
            const std::ptrdiff_t* a_strides, const T* b, const std::ptrdiff_t* b_strides, T* y);

/// y += x.
template <typename T>
void accumulate(T* y, const T* x, std::size_t n);
/// y = alpha x; y may be x.
template <typename T>
void scale(std::type_identity_t<T> alpha, const T* x, T* y, std::size_t n);
/// y = x + alpha; y may be x.
template <typename T>
void add_scalar(std::type_identity_t<T> alpha, const T* x, T* y, std::size_t n);
/// y = value.
template <typename T>
void fill(std::type_identity_t<T> value, T* y, std::size_t n);

}  // namespace xgrad::kernels
