#pragma once

#include <cstddef>

namespace xgrad::kernels {

// y[i] = f(x[i]) for i < n; y may be x. nan passes through every function but sign.

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
/// sigmoid(x) (1 - sigmoid(x)).
template <typename T>
void sigmoid_slope(const T* x, T* y, std::size_t n);
/// x sigmoid(x).
template <typename T>
void silu(const T* x, T* y, std::size_t n);
/// x Phi(x) = x / 2 (1 + erf(x / sqrt 2)).
template <typename T>
void gelu(const T* x, T* y, std::size_t n);
/// x / 2 (1 + tanh(sqrt(2 / pi) (x + 0.044715 x^3))).
template <typename T>
void gelu_tanh(const T* x, T* y, std::size_t n);

template <typename T>
void sin(const T* x, T* y, std::size_t n);
template <typename T>
void cos(const T* x, T* y, std::size_t n);
/// e^x - 1.
template <typename T>
void expm1(const T* x, T* y, std::size_t n);
/// ln(1 + x).
template <typename T>
void log1p(const T* x, T* y, std::size_t n);
/// ln sigmoid(x).
template <typename T>
void log_sigmoid(const T* x, T* y, std::size_t n);
/// x tanh(ln(1 + e^x)).
template <typename T>
void mish(const T* x, T* y, std::size_t n);
/// min(max(x + 3, 0), 6) / 6.
template <typename T>
void hardsigmoid(const T* x, T* y, std::size_t n);
/// x min(max(x + 3, 0), 6) / 6.
template <typename T>
void hardswish(const T* x, T* y, std::size_t n);
/// The constants of selu (Klambauer et al. 2017).
constexpr double selu_scale = 1.0507009873554804934, selu_alpha = 1.6732632423543772848;
/// selu_scale x where x > 0, else selu_scale selu_alpha (e^x - 1).
template <typename T>
void selu(const T* x, T* y, std::size_t n);
/// x / (1 + |x|).
template <typename T>
void softsign(const T* x, T* y, std::size_t n);
template <typename T>
void floor(const T* x, T* y, std::size_t n);
template <typename T>
void ceil(const T* x, T* y, std::size_t n);
/// To the nearest integer, halves to the even one.
template <typename T>
void round(const T* x, T* y, std::size_t n);
/// Towards zero.
template <typename T>
void trunc(const T* x, T* y, std::size_t n);
/// 1, -1 or 0; 0 for nan.
template <typename T>
void sign(const T* x, T* y, std::size_t n);
/// x where x > 0, else slope x.
template <typename T>
void leaky_relu(const T* x, T* y, std::size_t n, T slope);
/// x where x > 0, else alpha (e^x - 1).
template <typename T>
void elu(const T* x, T* y, std::size_t n, T alpha);
/// x where x > 0, else alpha (e^(x / alpha) - 1).
template <typename T>
void celu(const T* x, T* y, std::size_t n, T alpha);
/// x^2 / 2 where |x| <= delta, else delta (|x| - delta / 2).
template <typename T>
void huber(const T* x, T* y, std::size_t n, T delta);
/// ln(1 + e^(beta x)) / beta, and x where beta x > threshold.
template <typename T>
void softplus(const T* x, T* y, std::size_t n, T beta, T threshold);
/// min(max(x, low), high)
template <typename T>
void clamp(const T* x, T* y, std::size_t n, T low, T high);

/// What the gradients of hardsigmoid and celu have for 1 / 6 and for 1 / alpha: PyTorch rounds to float.
constexpr float hardsigmoid_slope = 1.0F / 6.0F;
template <typename T>
constexpr T celu_steepness(T alpha) {
  return static_cast<T>(1.0 / static_cast<double>(static_cast<float>(alpha)));
}

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
void tanh_grad(const T* dy, const T* x, T* dx, std::size_t n);
template <typename T>
void sigmoid_grad(const T* dy, const T* x, T* dx, std::size_t n);
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
template <typename T>
void sin_grad(const T* dy, const T* x, T* dx, std::size_t n);
template <typename T>
void cos_grad(const T* dy, const T* x, T* dx, std::size_t n);
template <typename T>
void log_sigmoid_grad(const T* dy, const T* x, T* dx, std::size_t n);
template <typename T>
void mish_grad(const T* dy, const T* x, T* dx, std::size_t n);
template <typename T>
void hardsigmoid_grad(const T* dy, const T* x, T* dx, std::size_t n);
template <typename T>
void hardswish_grad(const T* dy, const T* x, T* dx, std::size_t n);
template <typename T>
void selu_grad(const T* dy, const T* x, T* dx, std::size_t n);
template <typename T>
void softsign_grad(const T* dy, const T* x, T* dx, std::size_t n);
template <typename T>
void celu_grad(const T* dy, const T* x, T* dx, std::size_t n, T alpha);
/// 0 where x <= low or x >= high, else dy: clamp's gradient without the bounds.
template <typename T>
void hardtanh_grad(const T* dy, const T* x, T* dx, std::size_t n, T low, T high);
template <typename T>
void leaky_relu_grad(const T* dy, const T* x, T* dx, std::size_t n, T slope);
template <typename T>
void elu_grad(const T* dy, const T* x, T* dx, std::size_t n, T alpha);
template <typename T>
void huber_grad(const T* dy, const T* x, T* dx, std::size_t n, T delta);
/// dy where low <= x <= high.
template <typename T>
void clamp_grad(const T* dy, const T* x, T* dx, std::size_t n, T low, T high);

// y[i] = f(gate[i]) x[i], and the gradients of both, dgate = dy x f'(gate) and dx = dy f(gate).

template <typename T>
void gated_sigmoid(const T* gate, const T* x, T* y, std::size_t n);
template <typename T>
void gated_relu(const T* gate, const T* x, T* y, std::size_t n);
template <typename T>
void gated_silu(const T* gate, const T* x, T* y, std::size_t n);
template <typename T>
void gated_gelu(const T* gate, const T* x, T* y, std::size_t n);
template <typename T>
void gated_gelu_tanh(const T* gate, const T* x, T* y, std::size_t n);
template <typename T>
void gated_sigmoid_grad(const T* dy, const T* gate, const T* x, T* dgate, T* dx, std::size_t n);
template <typename T>
void gated_relu_grad(const T* dy, const T* gate, const T* x, T* dgate, T* dx, std::size_t n);
template <typename T>
void gated_silu_grad(const T* dy, const T* gate, const T* x, T* dgate, T* dx, std::size_t n);
template <typename T>
void gated_gelu_grad(const T* dy, const T* gate, const T* x, T* dgate, T* dx, std::size_t n);
template <typename T>
void gated_gelu_tanh_grad(const T* dy, const T* gate, const T* x, T* dgate, T* dx, std::size_t n);

}  // namespace xgrad::kernels
