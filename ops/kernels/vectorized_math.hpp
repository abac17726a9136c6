#pragma once

#include <bit>
#include <cmath>
#include <cstdint>
#include <limits>
#include <type_traits>
#include <xgrad/ops/kernels/vectorized.hpp>

/// exp, log, tanh and erf without branches or calls, so that a loop over them becomes vector code. At most 2
/// units in the last place from the exact value; nan, infinities, overflow and gradual underflow come out as
/// in <cmath>. (erf of double is <cmath>'s.)
namespace xgrad::kernels::vectorized {

template <typename T>
using Bits = std::conditional_t<std::is_same_v<T, float>, std::uint32_t, std::uint64_t>;

template <typename T>
inline constexpr int mantissa_bits = std::numeric_limits<T>::digits - 1;

template <typename T>
inline constexpr T two_to_mantissa_bits = T(Bits<T>(1) << mantissa_bits<T>);

/// Adding and subtracting this rounds to an integer, which the low bits of the sum hold meanwhile.
template <typename T>
inline constexpr T round_shift = T(1.5) * two_to_mantissa_bits<T>;

/// c0 + x (c1 + x (c2 + ...)).
template <typename T>
XGRAD_INLINE T horner(T, T c0) {
  return c0;
}
template <typename T, typename... Coefficients>
XGRAD_INLINE T horner(T x, T c0, Coefficients... c) {
  return c0 + x * horner(x, T(c)...);
}

/// 2^n for an integer n of the normal range.
template <typename T>
XGRAD_INLINE T power_of_two(T n) {
  const auto one = std::bit_cast<Bits<T>>(T(1));
  return std::bit_cast<T>((std::bit_cast<Bits<T>>(n + round_shift<T>) << mantissa_bits<T>)+one);
}

/// x = n ln 2 + r with |r| <= ln 2 / 2, the Taylor polynomial of exp(r), times 2^n in two halves: one alone
/// would overflow before exp does, and would not reach the denormal numbers.
template <typename T>
XGRAD_INLINE T exp(T x) {
  constexpr bool single = std::is_same_v<T, float>;
  constexpr T highest = single ? 89 : 710, lowest = single ? -105 : -746;
  constexpr T ln2_high = T(single ? 0x1.62ep-1 : 0x1.62e42feep-1);
  constexpr T ln2_low = T(single ? 0x1.0bfbe8e7bcd5ep-15 : 0x1.a39ef35793c76p-33);
  x = x > highest ? highest : x;
  x = x < lowest ? lowest : x;
  const T n = (x * T(1.4426950408889634074) + round_shift<T>)-round_shift<T>;
  const T r = (x - n * ln2_high) - n * ln2_low;
  T p;
  if constexpr (single) {
    p = horner(r, T(1.0 / 2), 1.0 / 6, 1.0 / 24, 1.0 / 120, 1.0 / 720, 1.0 / 5040);
  } else {
    p = horner(r, T(1.0 / 2), 1.0 / 6, 1.0 / 24, 1.0 / 120, 1.0 / 720, 1.0 / 5040, 1.0 / 40320, 1.0 / 362880,
               1.0 / 3628800, 1.0 / 39916800, 1.0 / 479001600, 1.0 / 6227020800);
  }
  p = T(1) + (r + r * r * p);
  const T half = (n * T(0.5) + round_shift<T>)-round_shift<T>;
  return p * power_of_two(half) * power_of_two(n - half);
}

/// x = 2^k m with m in [sqrt(1/2), sqrt(2)), and log(m) from a series in s = (m - 1) / (m + 1), as in fdlibm.
template <typename T>
XGRAD_INLINE T log(T x) {
  constexpr bool single = std::is_same_v<T, float>;
  constexpr T infinity = std::numeric_limits<T>::infinity();
  constexpr T bias = std::numeric_limits<T>::max_exponent - 1;
  constexpr T ln2_high = T(single ? 0x1.62e3p-1 : 0x1.62e42feep-1);
  constexpr T ln2_low = T(single ? 9.0580006145e-06 : 1.90821492927058770002e-10);
  constexpr auto root = std::bit_cast<Bits<T>>(T(0.70710678118654752440));
  constexpr auto one = std::bit_cast<Bits<T>>(T(1));
  constexpr auto mantissa = (Bits<T>(1) << mantissa_bits<T>)-1;

  const T lift = x < std::numeric_limits<T>::min() ? two_to_mantissa_bits<T> : T(1);
  const T lifted = lift > 1 ? T(mantissa_bits<T>) : T(0);
  const Bits<T> bits = std::bit_cast<Bits<T>>(x * lift) + (one - root);
  const Bits<T> exponent = (bits >> mantissa_bits<T>) | std::bit_cast<Bits<T>>(two_to_mantissa_bits<T>);
  const T k = std::bit_cast<T>(exponent) - two_to_mantissa_bits<T> - bias - lifted;
  const T f = std::bit_cast<T>((bits & mantissa) + root) - T(1);
  const T s = f / (T(2) + f);
  const T z = s * s;
  T series;
  if constexpr (single) {
    series = horner(z, T(0.66666662693), 0.40000972152, 0.28498786688, 0.24279078841);
  } else {
    series = horner(z, T(6.666666666666735130e-01), 3.999999999940941908e-01, 2.857142874366239149e-01,
                    2.222219843214978396e-01, 1.818357216161805012e-01, 1.531383769920937332e-01,
                    1.479819860511658591e-01);
  }
  const T square = T(0.5) * f * f;
  T y = k * ln2_high - ((square - (s * (square + z * series) + k * ln2_low)) - f);
  y = x == infinity ? infinity : y;
  y = x == T(0) ? -infinity : y;
  y = x < T(0) ? std::numeric_limits<T>::quiet_NaN() : y;
  return x != x ? x : y;
}

/// 1 - 2 / (exp(2 |x|) + 1), and near 0, where that cancels, x + x^3 P(x^2) (Cephes).
template <typename T>
XGRAD_INLINE T tanh(T x) {
  const T z = x * x;
  T p;
  if constexpr (std::is_same_v<T, float>) {
    p = horner(z, T(-3.33332819422e-1), 1.33314422036e-1, -5.37397155531e-2, 2.06390887954e-2,
               -5.70498872745e-3);
  } else {
    p = horner(z, T(-1.61468768441708447952e3), -9.92877231001918586564e1, -9.64399179425052238628e-1) /
        horner(z, T(4.84406305325125486048e3), 2.23548839060100448583e3, 1.12811678491632931402e2, 1.0);
  }
  const T near = x + x * (z * p);
  const T magnitude = std::fabs(x);
  const T far = std::copysign(T(1) - T(2) / (exp(T(2) * magnitude) + T(1)), x);
  return magnitude < T(0.625) ? near : far;
}

/// 1 - exp(-P(|x|)), and near 0 x + x Q(x^2); minimax polynomials by N. Juffa.
template <typename T>
XGRAD_INLINE T erf(T x) {
  if constexpr (std::is_same_v<T, double>) {
    return std::erf(x);
  } else {
    const T t = std::fabs(x);
    const T z = x * x;
    const T near = x + x * horner(z, T(1.28379166e-1), -3.76125336e-1, 1.12819925e-1, -2.67681349e-2,
                                  4.99119423e-3, -5.96761703e-4);
    const T far_t =
        t > T(4) ? T(4) : t;  // there the result is 1, and the polynomial is not to be trusted beyond
    const T power = horner(far_t, T(-1.28717512e-1), -6.34846687e-1, -1.06777877e-1, 2.42546219e-2,
                           -3.88396438e-3, 3.83197126e-4, -1.72853470e-5);
    const T far = std::copysign(T(1) - exp(far_t * power - far_t), x);
    const T y = t > T(0.927734375) ? far : near;
    return x != x ? x : y;
  }
}

}  // namespace xgrad::kernels::vectorized
