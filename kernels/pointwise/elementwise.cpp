#include "elementwise.hpp"

#include <algorithm>
#include <cmath>
#include <limits>

#include "../../base/detail/bytes/bit_cast.hpp"
#include "../../base/detail/system/pieces.hpp"
#include "vectorized_math.hpp"

namespace xgrad::kernels {

namespace {

constexpr double inverse_sqrt_2pi = 0.39894228040143267794;  // 1 / sqrt(2 pi)
constexpr double sqrt_2_over_pi = 0.79788456080286535588;    // sqrt(2 / pi)
constexpr double two_over_sqrt_pi = 1.12837916709551257390;  // 2 / sqrt(pi)
constexpr double gelu_cubic = 0.044715;

constexpr std::size_t exp_cost = 2;  // of a function bound by flops, in additions, which wait for memory

/// Phi(x), the distribution function of the standard normal.
template <typename T>
XGRAD_INLINE T normal_cdf(T x) {
  return vectorized::normal_cdf_given_exp(x, vectorized::exp_nonpositive(T(-0.5) * x * x));
}

/// Phi(x) + x phi(x), with 0 phi of infinities; both have one exponential.
template <typename T>
XGRAD_INLINE T gelu_derivative(T x) {
  const T e = vectorized::exp_nonpositive(T(-0.5) * x * x);
  const T slope = x * (T(inverse_sqrt_2pi) * e);
  return vectorized::normal_cdf_given_exp(x, e) + vectorized::rounded(e == T(0) ? T(0) : slope);
}

using vectorized::sigmoid_of;

/// e / (1 + e)^2: s (1 - s) where neither factor cancels.
template <typename T>
XGRAD_INLINE T sigmoid_derivative(T x) {
  const T e = vectorized::exp(-std::fabs(x)), larger = T(1) / (T(1) + e);
  return e * larger * larger;
}

template <typename T>
XGRAD_INLINE T silu_derivative(T x) {
  const T s = sigmoid_of(x);
  return s + x * s * (T(1) - s);
}

template <typename T>
XGRAD_INLINE T softplus_of(T x, T beta, T threshold) {
  const T z = beta * x;
  const T positive = z < T(0) ? T(0) : z;
  const T y = (positive + vectorized::log1p(vectorized::exp(-std::fabs(z)))) / beta;
  return z > threshold ? x : y;
}

template <typename T>
XGRAD_INLINE T clamp_of(T x, T low, T high) {
  const T raised = x < low ? low : x;
  return raised > high ? high : raised;
}

template <typename T>
XGRAD_INLINE T log_sigmoid_of(T x) {
  const T negative = x > T(0) ? T(0) : x;
  return negative - vectorized::log1p(vectorized::exp(-std::fabs(x)));
}

template <typename T>
XGRAD_INLINE T elu_of(T x, T alpha) {
  const T y = alpha * vectorized::expm1(x);
  return x <= T(0) ? y : x;
}

template <typename T>
XGRAD_INLINE T huber_of(T x, T delta) {
  const T magnitude = std::fabs(x);
  const T near = T(0.5) * x * x, far = delta * (magnitude - T(0.5) * delta);
  return magnitude > delta ? far : near;
}

/// (1 + tanh(u)) / 2 = 1 / (1 + e^(-2 u)) with the u of gelu_tanh: below 0 it does not cancel.
template <typename T>
XGRAD_INLINE T gelu_tanh_share(T x) {
  return sigmoid_of(T(2 * sqrt_2_over_pi) * (x + T(gelu_cubic) * x * x * x));
}

/// s + x s (1 - s) 2 u', with s the share; the second term is 0 long before x^2 overflows.
template <typename T>
XGRAD_INLINE T gelu_tanh_derivative(T x) {
  constexpr T furthest = 32;
  const T within = clamp_of(x, -furthest, furthest);
  const T u = T(2 * sqrt_2_over_pi) * (within + T(gelu_cubic) * within * within * within);
  const T e = vectorized::exp(-std::fabs(u)), larger = T(1) / (T(1) + e), smaller = e * larger;
  const T slope = T(2 * sqrt_2_over_pi) * (T(1) + T(3 * gelu_cubic) * within * within);
  return (u < T(0) ? smaller : larger) + vectorized::rounded(within * (smaller * larger) * slope);
}

/// x tanh(ln(1 + e^x)) = x n / (n + d) with polynomials n and d of e = e^-|x|; 0 at -infinity.
template <typename T>
XGRAD_INLINE T mish_of(T x) {
  const T e = vectorized::exp(-std::fabs(x)), n = x < T(0) ? e * (e + T(2)) : T(1) + T(2) * e;
  const T share = n / (n + (x < T(0) ? T(2) : T(2) * e * e)), y = x * share;
  return share == T(0) ? T(0) : y;
}

/// tanh(u) + x sigmoid(x) (1 - tanh(u)^2) with u = ln(1 + e^x); neither factor of the second term cancels,
/// and it is 0 at infinities.
template <typename T>
XGRAD_INLINE T mish_derivative(T x) {
  const T e = vectorized::exp(-std::fabs(x)), n = x < T(0) ? e * (e + T(2)) : T(1) + T(2) * e;
  const T d = n + (x < T(0) ? T(2) : T(2) * e * e);
  const T bend = T(4) * e * (T(1) + e) * (x < T(0) ? T(1) : e) / (d * d);
  const T slope = x * bend;
  return n / d + vectorized::rounded(e == T(0) ? T(0) : slope);
}

template <typename T>
XGRAD_INLINE T hardswish_of(T x) {
  const T y = x * clamp_of(x + T(3), T(0), T(6)) / T(6);
  return x <= T(-3) ? T(0) : y;
}

/// x / (1 + |x|), and 1 or -1 at infinities.
template <typename T>
XGRAD_INLINE T softsign_of(T x) {
  constexpr T most = std::numeric_limits<T>::max();
  return clamp_of(x, -most, most) / (T(1) + std::min(std::fabs(x), most));
}

template <typename T>
XGRAD_INLINE T selu_of(T x) {
  const T negative = T(selu_scale * selu_alpha) * vectorized::expm1(x);
  return x <= T(0) ? negative : T(selu_scale) * x;
}

template <typename T>
XGRAD_INLINE T celu_of(T x, T alpha) {
  const T negative = alpha * vectorized::expm1(x / alpha);
  return x > T(0) ? x : negative;
}

template <typename T>
XGRAD_INLINE T celu_derivative(T x, T alpha) {
  const T steepness = celu_steepness(alpha), negative = alpha * steepness * vectorized::exp(x * steepness);
  return x > T(0) ? T(1) : negative;
}

constexpr std::size_t angle_block = 256;  // of which a buffer fits into the first cache

/// y[i] = sin(x[i]) or cos(x[i]) for i < n <= angle_block, where y is not x. Angles that are too large for
/// the vector code are rare.
template <bool cosine, typename T>
XGRAD_INLINE void sines_or_cosines(const T* x, T* y, std::size_t n) {
  using vectorized::Bits, vectorized::largest_angle, vectorized::sine_or_cosine;
  constexpr auto largest = bit_cast<Bits<T>>(largest_angle<T>);
  Bits<T> room = 0;  // its sign bit is set by an angle beyond the largest, and by nan
  XGRAD_INDEPENDENT
  for (std::size_t i = 0; i < n; ++i) {
    room |= largest - bit_cast<Bits<T>>(std::fabs(x[i]));
    y[i] = sine_or_cosine<cosine>(x[i]);
  }
  if (room >> (8 * sizeof(T) - 1) == 0) return;
  for (std::size_t i = 0; i < n; ++i) {
    if (!(std::fabs(x[i]) <= largest_angle<T>)) y[i] = cosine ? std::cos(x[i]) : std::sin(x[i]);
  }
}

/// y = sin(x) or cos(x) for elements begin to n.
template <bool cosine, typename T>
XGRAD_INLINE void map_angles(const T* x, T* y, std::size_t begin, std::size_t n) {
  T block[angle_block];
  for (; begin < n; begin += angle_block) {
    const std::size_t size = std::min(angle_block, n - begin);
    const T* from = x + begin;
    if (x == y) from = std::copy_n(from, size, block) - size;
    sines_or_cosines<cosine>(from, y + begin, size);
  }
}

/// dx = factor dy sin(x), or cos(x), for elements begin to n.
template <bool cosine, typename T>
XGRAD_INLINE void map_angle_grads(T factor, const T* dy, const T* x, T* dx, std::size_t begin,
                                  std::size_t n) {
  T block[angle_block];
  for (; begin < n; begin += angle_block) {
    const std::size_t size = std::min(angle_block, n - begin);
    sines_or_cosines<cosine>(x + begin, block, size);
    XGRAD_INDEPENDENT
    for (std::size_t i = 0; i < size; ++i) dx[begin + i] = factor * block[i] * dy[begin + i];
  }
}

}  // namespace

/// y = f(x). Bandwidth bounds the algebraic functions from the second cache level on; exp, log, tanh and erf
/// do 10 to 30 operations per element and are bound by flops, so that smaller pieces of them pay.
#define XGRAD_MAP(name, cost, params, args, ...)       \
  XGRAD_PARALLEL_KERNEL(name, n, cost, params, args) { \
    XGRAD_INDEPENDENT                                  \
    for (std::size_t i = begin; i < end; ++i) {        \
      const T x = in[i];                               \
      out[i] = __VA_ARGS__;                            \
    }                                                  \
  }
#define XGRAD_UNARY(name, cost, ...) \
  XGRAD_MAP(name, cost, (const T* in, T* out, std::size_t n), (in, out, n), __VA_ARGS__)
#define XGRAD_UNARY_PARAMETER(name, cost, p, ...) \
  XGRAD_MAP(name, cost, (const T* in, T* out, std::size_t n, T p), (in, out, n, p), __VA_ARGS__)

XGRAD_UNARY(exp, exp_cost, vectorized::exp(x))
XGRAD_UNARY(log, exp_cost, vectorized::log(x))
XGRAD_UNARY(sqrt, 1, std::sqrt(x))
XGRAD_UNARY(rsqrt, 1, T(1) / std::sqrt(x))
XGRAD_UNARY(reciprocal, 1, T(1) / x)
XGRAD_UNARY(square, 1, x* x)
XGRAD_UNARY(cube, 1, x* x* x)
XGRAD_UNARY(abs, 1, std::fabs(x))
XGRAD_UNARY(tanh, exp_cost, vectorized::tanh(x))
XGRAD_UNARY(sigmoid, exp_cost, sigmoid_of(x))
XGRAD_UNARY(sigmoid_slope, exp_cost, sigmoid_derivative(x))
XGRAD_UNARY(erf, exp_cost, vectorized::erf(x))
XGRAD_UNARY(relu, 1, x < T(0) ? T(0) : x)
XGRAD_UNARY(silu, exp_cost, x* sigmoid_of(x))
XGRAD_UNARY(gelu, exp_cost, normal_cdf(x) * x)
XGRAD_UNARY(gelu_tanh, exp_cost, x* gelu_tanh_share(x))
XGRAD_UNARY(expm1, exp_cost, vectorized::expm1(x))
XGRAD_UNARY(log1p, exp_cost, vectorized::log1p(x))
XGRAD_UNARY(log_sigmoid, exp_cost, log_sigmoid_of(x))
XGRAD_UNARY(mish, exp_cost, mish_of(x))
XGRAD_UNARY(hardsigmoid, 1, clamp_of(x + T(3), T(0), T(6)) / T(6))
XGRAD_UNARY(hardswish, 1, hardswish_of(x))
XGRAD_UNARY(selu, exp_cost, selu_of(x))
XGRAD_UNARY(softsign, 1, softsign_of(x))
XGRAD_UNARY(floor, 1, std::floor(x))
XGRAD_UNARY(ceil, 1, std::ceil(x))
XGRAD_UNARY(round, 1, std::nearbyint(x))
XGRAD_UNARY(trunc, 1, std::trunc(x))
XGRAD_UNARY(sign, 1, T(x > T(0)) - T(x < T(0)))

XGRAD_PARALLEL_KERNEL(sin, n, exp_cost, (const T* x, T* y, std::size_t n), (x, y, n)) {
  map_angles<false>(x, y, begin, end);
}
XGRAD_PARALLEL_KERNEL(cos, n, exp_cost, (const T* x, T* y, std::size_t n), (x, y, n)) {
  map_angles<true>(x, y, begin, end);
}
XGRAD_PARALLEL_KERNEL(sin_grad, n, exp_cost, (const T* dy, const T* x, T* dx, std::size_t n),
                      (dy, x, dx, n)) {
  map_angle_grads<true>(T(1), dy, x, dx, begin, end);
}
XGRAD_PARALLEL_KERNEL(cos_grad, n, exp_cost, (const T* dy, const T* x, T* dx, std::size_t n),
                      (dy, x, dx, n)) {
  map_angle_grads<false>(T(-1), dy, x, dx, begin, end);
}

/// dx = dy f', where g is dy, and s what the forward saved: its input x or its output y.
#define XGRAD_MAP_GRAD(name, cost, params, args, ...)  \
  XGRAD_PARALLEL_KERNEL(name, n, cost, params, args) { \
    XGRAD_INDEPENDENT                                  \
    for (std::size_t i = begin; i < end; ++i) {        \
      const T s = saved[i];                            \
      const T g = dy[i];                               \
      dx[i] = __VA_ARGS__;                             \
    }                                                  \
  }
#define XGRAD_UNARY_GRAD(name, cost, ...)                                                             \
  XGRAD_MAP_GRAD(name, cost, (const T* dy, const T* saved, T* dx, std::size_t n), (dy, saved, dx, n), \
                 __VA_ARGS__)
#define XGRAD_UNARY_PARAMETER_GRAD(name, cost, p, ...)                                 \
  XGRAD_MAP_GRAD(name, cost, (const T* dy, const T* saved, T* dx, std::size_t n, T p), \
                 (dy, saved, dx, n, p), __VA_ARGS__)

XGRAD_UNARY_GRAD(sqrt_grad, 1, g / (T(2) * s))
XGRAD_UNARY_GRAD(rsqrt_grad, 1, T(-0.5) * g * (s * s * s))
XGRAD_UNARY_GRAD(reciprocal_grad, 1, -g*(s* s))
XGRAD_UNARY_GRAD(square_grad, 1, T(2) * s * g)
XGRAD_UNARY_GRAD(cube_grad, 1, g*(T(3) * (s * s)))
XGRAD_UNARY_GRAD(abs_grad, 1, (s > T(0) ? g : s < T(0) ? -g : T(0)))
XGRAD_UNARY_GRAD(tanh_grad, exp_cost, T(4) * sigmoid_derivative(T(2) * s) * g)
XGRAD_UNARY_GRAD(sigmoid_grad, exp_cost, sigmoid_derivative(s) * g)
XGRAD_UNARY_GRAD(erf_grad, exp_cost, T(two_over_sqrt_pi) * vectorized::exp(-s * s) * g)
XGRAD_UNARY_GRAD(silu_grad, exp_cost, silu_derivative(s) * g)
XGRAD_UNARY_GRAD(relu_grad, 1, s <= T(0) ? T(0) : g)
XGRAD_UNARY_GRAD(gelu_grad, exp_cost, gelu_derivative(s) * g)
XGRAD_UNARY_GRAD(gelu_tanh_grad, exp_cost, gelu_tanh_derivative(s) * g)
XGRAD_UNARY_GRAD(log_sigmoid_grad, exp_cost, sigmoid_of(-s) * g)
XGRAD_UNARY_GRAD(mish_grad, exp_cost, mish_derivative(s) * g)
XGRAD_UNARY_GRAD(hardsigmoid_grad, 1, ((s > T(-3)) & (s < T(3))) ? g* T(hardsigmoid_slope) : T(0))
XGRAD_UNARY_GRAD(hardswish_grad, 1, (s <= T(-3) ? T(0) : s < T(3) ? g * (s / T(3) + T(0.5)) : g))
XGRAD_UNARY_GRAD(selu_grad, exp_cost,
                 g*(s > T(0) ? T(selu_scale) : T(selu_scale * selu_alpha) * vectorized::exp(s)))
XGRAD_UNARY_GRAD(softsign_grad, 1, g / (T(1) + std::fabs(s)) / (T(1) + std::fabs(s)))

/// Bound by the exponential and the logarithm.
XGRAD_PARALLEL_KERNEL(softplus, n, exp_cost, (const T* x, T* y, std::size_t n, T beta, T threshold),
                      (x, y, n, beta, threshold)) {
  XGRAD_INDEPENDENT
  for (std::size_t i = begin; i < end; ++i) y[i] = softplus_of(x[i], beta, threshold);
}

XGRAD_PARALLEL_KERNEL(softplus_grad, n, exp_cost,
                      (const T* dy, const T* x, T* dx, std::size_t n, T beta, T threshold),
                      (dy, x, dx, n, beta, threshold)) {
  XGRAD_INDEPENDENT
  for (std::size_t i = begin; i < end; ++i) {
    const T z = beta * x[i], g = dy[i];
    const T scaled = g * sigmoid_of(z);
    dx[i] = z > threshold ? g : scaled;
  }
}

/// Bound by bandwidth.
XGRAD_PARALLEL_KERNEL(clamp, n, 1, (const T* x, T* y, std::size_t n, T low, T high), (x, y, n, low, high)) {
  XGRAD_INDEPENDENT
  for (std::size_t i = begin; i < end; ++i) y[i] = clamp_of(x[i], low, high);
}

XGRAD_PARALLEL_KERNEL(clamp_grad, n, 1, (const T* dy, const T* x, T* dx, std::size_t n, T low, T high),
                      (dy, x, dx, n, low, high)) {
  XGRAD_INDEPENDENT
  for (std::size_t i = begin; i < end; ++i) {
    const T s = x[i], g = dy[i];
    dx[i] = ((s >= low) & (s <= high)) ? g : T(0);
  }
}

XGRAD_PARALLEL_KERNEL(hardtanh_grad, n, 1, (const T* dy, const T* x, T* dx, std::size_t n, T low, T high),
                      (dy, x, dx, n, low, high)) {
  XGRAD_INDEPENDENT
  for (std::size_t i = begin; i < end; ++i) {
    const T s = x[i], g = dy[i];
    dx[i] = ((s <= low) | (s >= high)) ? T(0) : g;
  }
}

XGRAD_UNARY_PARAMETER(leaky_relu, 1, slope, x > T(0) ? x : x * slope)
XGRAD_UNARY_PARAMETER(elu, exp_cost, alpha, elu_of(x, alpha))
XGRAD_UNARY_PARAMETER(celu, exp_cost, alpha, celu_of(x, alpha))
XGRAD_UNARY_PARAMETER(huber, 1, delta, huber_of(x, delta))

XGRAD_UNARY_PARAMETER_GRAD(leaky_relu_grad, 1, slope, g*(s > T(0) ? T(1) : slope))
XGRAD_UNARY_PARAMETER_GRAD(elu_grad, exp_cost, alpha, g*(s > T(0) ? T(1) : alpha * vectorized::exp(s)))
XGRAD_UNARY_PARAMETER_GRAD(celu_grad, exp_cost, alpha, g* celu_derivative(s, alpha))
XGRAD_UNARY_PARAMETER_GRAD(huber_grad, 1, delta, g* clamp_of(s, -delta, delta))

/// y = f(g) x and its gradients, where g is the gate and t = dy x the gradient of f(g).
#define XGRAD_GATED(name, cost, value, gate_gradient)                                             \
  XGRAD_PARALLEL_KERNEL(gated_##name, n, cost, (const T* gate, const T* x, T* y, std::size_t n),  \
                        (gate, x, y, n)) {                                                        \
    XGRAD_INDEPENDENT                                                                             \
    for (std::size_t i = begin; i < end; ++i) {                                                   \
      const T g = gate[i];                                                                        \
      y[i] = (value)*x[i];                                                                        \
    }                                                                                             \
  }                                                                                               \
  XGRAD_PARALLEL_KERNEL(gated_##name##_grad, n, 2 * cost,                                         \
                        (const T* dy, const T* gate, const T* x, T* dgate, T* dx, std::size_t n), \
                        (dy, gate, x, dgate, dx, n)) {                                            \
    XGRAD_INDEPENDENT                                                                             \
    for (std::size_t i = begin; i < end; ++i) {                                                   \
      const T g = gate[i], d = dy[i], t = d * x[i];                                               \
      dgate[i] = gate_gradient;                                                                   \
      dx[i] = d * (value);                                                                        \
    }                                                                                             \
  }

XGRAD_GATED(sigmoid, exp_cost, sigmoid_of(g), t* sigmoid_derivative(g))
XGRAD_GATED(relu, 1, (g < T(0) ? T(0) : g), (g <= T(0) ? T(0) : t))
XGRAD_GATED(silu, exp_cost, g* sigmoid_of(g), t* silu_derivative(g))
XGRAD_GATED(gelu, exp_cost, normal_cdf(g) * g, t* gelu_derivative(g))
XGRAD_GATED(gelu_tanh, exp_cost, g* gelu_tanh_share(g), t* gelu_tanh_derivative(g))

}  // namespace xgrad::kernels
