#pragma once

#include <cstddef>

namespace xgrad::kernels {

// y[i] = f(x[i]) for i < n; y may be x. nan passes through every function.

template <typename T>
void exp(const T* x, T* y, std::size_t n);
template <typename T>
void log(const T* x, T* y, std::size_t n);
template <typename T>
void sqrt(const T* x, T* y, std::size_t n);
template <typename T>
void tanh(const T* x, T* y, std::size_t n);
template <typename T>
void erf(const T* x, T* y, std::size_t n);
template <typename T>
void relu(const T* x, T* y, std::size_t n);
/// x Phi(x) = x / 2 (1 + erf(x / sqrt 2)).
template <typename T>
void gelu(const T* x, T* y, std::size_t n);
/// x / 2 (1 + tanh(sqrt(2 / pi) (x + 0.044715 x^3))).
template <typename T>
void gelu_tanh(const T* x, T* y, std::size_t n);

// dx[i] = dy[i] f'(x[i]), from the output y where that is enough; dx may be dy.

template <typename T>
void tanh_grad(const T* dy, const T* y, T* dx, std::size_t n);
template <typename T>
void relu_grad(const T* dy, const T* y, T* dx, std::size_t n);
template <typename T>
void gelu_grad(const T* dy, const T* x, T* dx, std::size_t n);
template <typename T>
void gelu_tanh_grad(const T* dy, const T* x, T* dx, std::size_t n);

}  // namespace xgrad::kernels
