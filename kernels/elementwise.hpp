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
void rsqrt(const T* x, T* y, std::size_t n);
template <typename T>
void reciprocal(const T* x, T* y, std::size_t n);
template <typename T>
void square(const T* x, T* y, std::size_t n);
template <typename T>
void cube(const T* x, T* y, std::size_t n);
template <typename T>
void abs(const T* x, T* y, std::size_t n);
template <typename T>
void tanh(const T* x, T* y, std::size_t n);
template <typename T>
void sigmoid(const T* x, T* y, std::size_t n);
template <typename T>
void erf(const T* x, T* y, std::size_t n);
template <typename T>
void relu(const T* x, T* y, std::size_t n);
/// x sigmoid(x).
template <typename T>
void silu(const T* x, T* y, std::size_t n);
/// x Phi(x) = x / 2 (1 + erf(x / sqrt 2)).
template <typename T>
void gelu(const T* x, T* y, std::size_t n);
/// x / 2 (1 + tanh(sqrt(2 / pi) (x + 0.044715 x^3))).
template <typename T>
void gelu_tanh(const T* x, T* y, std::size_t n);

/// ln(1 + e^(beta x)) / beta, and x where beta x > threshold.
template <typename T>
void softplus(const T* x, T* y, std::size_t n, T beta, T threshold);
/// min(max(x, low), high)
template <typename T>
void clamp(const T* x, T* y, std::size_t n, T low, T high);

// dx[i] = dy[i] f'(x[i]), from the output y where that is enough; dx may be dy.

template <typename T>
void sqrt_grad(const T* dy, const T* y, T* dx, std::size_t n);
template <typename T>
void rsqrt_grad(const T* dy, const T* y, T* dx, std::size_t n);
template <typename T>
void reciprocal_grad(const T* dy, const T* y, T* dx, std::size_t n);
template <typename T>
void square_grad(const T* dy, const T* x, T* dx, std::size_t n);
template <typename T>
void cube_grad(const T* dy, const T* x, T* dx, std::size_t n);
template <typename T>
void abs_grad(const T* dy, const T* x, T* dx, std::size_t n);
template <typename T>
void tanh_grad(const T* dy, const T* y, T* dx, std::size_t n);
template <typename T>
void sigmoid_grad(const T* dy, const T* y, T* dx, std::size_t n);
template <typename T>
void erf_grad(const T* dy, const T* x, T* dx, std::size_t n);
template <typename T>
void silu_grad(const T* dy, const T* x, T* dx, std::size_t n);
template <typename T>
void relu_grad(const T* dy, const T* y, T* dx, std::size_t n);
template <typename T>
void gelu_grad(const T* dy, const T* x, T* dx, std::size_t n);
template <typename T>
void gelu_tanh_grad(const T* dy, const T* x, T* dx, std::size_t n);
template <typename T>
void softplus_grad(const T* dy, const T* x, T* dx, std::size_t n, T beta, T threshold);
/// dy where low <= x <= high.
template <typename T>
void clamp_grad(const T* dy, const T* x, T* dx, std::size_t n, T low, T high);

}  // namespace xgrad::kernels
