#include <cmath>
#include <xgrad/ops/kernels/elementwise.hpp>
#include <xgrad/ops/kernels/vectorized.hpp>
#include <xgrad/ops/kernels/vectorized_math.hpp>

namespace xgrad::kernels {

namespace {

constexpr double sqrt_half = 0.70710678118654752440;         // 1 / sqrt(2)
constexpr double inverse_sqrt_2pi = 0.39894228040143267794;  // 1 / sqrt(2 pi)
constexpr double sqrt_2_over_pi = 0.79788456080286535588;    // sqrt(2 / pi)
constexpr double gelu_cubic = 0.044715;

/// Phi(x), the cumulative distribution of the standard normal.
template <typename T>
XGRAD_INLINE T normal_cdf(T x) {
  return T(0.5) * (T(1) + vectorized::erf(x * T(sqrt_half)));
}

template <typename T>
XGRAD_INLINE T normal_pdf(T x) {
  return T(inverse_sqrt_2pi) * vectorized::exp(T(-0.5) * x * x);
}

/// The tanh in gelu_tanh.
template <typename T>
XGRAD_INLINE T gelu_tanh_of(T x) {
  return vectorized::tanh(T(sqrt_2_over_pi) * (x + T(gelu_cubic) * x * x * x));
}

template <typename T>
XGRAD_INLINE T gelu_tanh_derivative(T x) {
  const T t = gelu_tanh_of(x);
  const T inner = T(sqrt_2_over_pi) * (T(1) + T(3 * gelu_cubic) * x * x);
  return T(0.5) * (T(1) + t) + T(0.5) * x * (T(1) - t * t) * inner;
}

}  // namespace

/// y = f(x). Bandwidth bounds the algebraic functions from the second cache level on; exp, log, tanh and erf
/// do 10 to 30 operations per element and are bound by flops.
#define XGRAD_UNARY(name, ...)                                                   \
  XGRAD_KERNEL(void, name, (const T* in, T* out, std::size_t n), (in, out, n)) { \
    XGRAD_INDEPENDENT                                                            \
    for (std::size_t i = 0; i < n; ++i) {                                        \
      const T x = in[i];                                                         \
      out[i] = __VA_ARGS__;                                                      \
    }                                                                            \
  }

XGRAD_UNARY(exp, vectorized::exp(x))
XGRAD_UNARY(log, vectorized::log(x))
XGRAD_UNARY(sqrt, std::sqrt(x))
XGRAD_UNARY(tanh, vectorized::tanh(x))
XGRAD_UNARY(erf, vectorized::erf(x))
XGRAD_UNARY(relu, x < T(0) ? T(0) : x)
XGRAD_UNARY(gelu, normal_cdf(x) * x)
XGRAD_UNARY(gelu_tanh, T(0.5) * x * (T(1) + gelu_tanh_of(x)))

/// dx = dy f', where g is dy, and s what the forward saved: its input x or its output y.
#define XGRAD_UNARY_GRAD(name, ...)                                                                   \
  XGRAD_KERNEL(void, name, (const T* dy, const T* saved, T* dx, std::size_t n), (dy, saved, dx, n)) { \
    XGRAD_INDEPENDENT                                                                                 \
    for (std::size_t i = 0; i < n; ++i) {                                                             \
      const T s = saved[i];                                                                           \
      const T g = dy[i];                                                                              \
      dx[i] = __VA_ARGS__;                                                                            \
    }                                                                                                 \
  }

XGRAD_UNARY_GRAD(tanh_grad, (T(1) - s * s) * g)
XGRAD_UNARY_GRAD(relu_grad, s <= T(0) ? T(0) : g)
XGRAD_UNARY_GRAD(gelu_grad, (normal_cdf(s) + s * normal_pdf(s)) * g)
XGRAD_UNARY_GRAD(gelu_tanh_grad, gelu_tanh_derivative(s) * g)

}  // namespace xgrad::kernels
