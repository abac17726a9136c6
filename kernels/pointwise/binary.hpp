#pragma once

#include <cstddef>
#include <type_traits>

#include "../matrix.hpp"

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

template <typename T>
void maximum(const T* a, const T* b, T* y, std::size_t n);
template <typename T>
void minimum(const T* a, const T* b, T* y, std::size_t n);
template <typename T>
void pow(const T* a, const T* b, T* y, std::size_t n);
/// What share of the gradient a has in maximum(a, b): 1, 1/2 where both are equal, or 0.
template <typename T>
void maximum_share(const T* a, const T* b, T* y, std::size_t n);
/// a b, but 0 where b is 0, even if a is infinite or nan.
template <typename T>
void masked_mul(const T* a, const T* b, T* y, std::size_t n);
/// (a - b)^2.
template <typename T>
void squared_difference(const T* a, const T* b, T* y, std::size_t n);
/// 1 where a == b, else 0.
template <typename T>
void equal(const T* a, const T* b, T* y, std::size_t n);
/// a ln b, but 0 where a is 0 and b is not nan.
template <typename T>
void xlogy(const T* a, const T* b, T* y, std::size_t n);
template <typename T>
void atan2(const T* a, const T* b, T* y, std::size_t n);
/// The remainder of a / b, which has the sign of a.
template <typename T>
void fmod(const T* a, const T* b, T* y, std::size_t n);

/// ln(e^a + e^b).
template <typename T>
void logaddexp(const T* a, const T* b, T* y, std::size_t n);
template <typename T>
void hypot(const T* a, const T* b, T* y, std::size_t n);
/// The remainder of a / b, which has the sign of b.
template <typename T>
void remainder(const T* a, const T* b, T* y, std::size_t n);
/// -(target ln p + (1 - target) ln(1 - p)), with logarithms of at least -100.
template <typename T>
void binary_cross_entropy(const T* p, const T* target, T* y, std::size_t n);
/// dp = dy (p - target) / max((1 - p) p, 1e-12).
template <typename T>
void binary_cross_entropy_grad(const T* dy, const T* p, const T* target, T* dp, std::size_t n);

enum class Binary {
  add,
  sub,
  mul,
  div,
  maximum,
  minimum,
  pow,
  maximum_share,
  masked_mul,
  squared_difference,
  equal,
  xlogy,
  atan2,
  fmod,
  logaddexp,
  hypot,
  remainder
};

/// Broadcasting: y (contiguous, of `shape`) = a op b.
template <typename T>
void binary(Binary op, Lengths shape, const Strided<const T>& a, const Strided<const T>& b, T* y);

/// Broadcasting: y (contiguous, of `shape`) = condition ? a : b.
template <typename T>
void where(Lengths shape, const Strided<const bool>& condition, const Strided<const T>& a,
           const Strided<const T>& b, T* y);

/// y += x.
template <typename T>
void accumulate(T* y, const T* x, std::size_t n);
/// y = (y + a) + (b + c).
template <typename T>
void accumulate_three(T* y, const T* a, const T* b, const T* c, std::size_t n);
/// y = alpha x; y may be x.
template <typename T>
void scale(std::type_identity_t<T> alpha, const T* x, T* y, std::size_t n);
/// y = x / divisor; y may be x.
template <typename T>
void div_scalar(std::type_identity_t<T> divisor, const T* x, T* y, std::size_t n);
/// y = x + alpha; y may be x.
template <typename T>
void add_scalar(std::type_identity_t<T> alpha, const T* x, T* y, std::size_t n);
/// y = value.
template <typename T>
void fill(std::type_identity_t<T> value, T* y, std::size_t n);

}  // namespace xgrad::kernels
