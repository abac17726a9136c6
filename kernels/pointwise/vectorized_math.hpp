#pragma once

#include <cmath>
#include <cstdint>
#include <limits>
#include <type_traits>

#include "../../base/detail/arrays/vectorized.hpp"
#include "../../base/detail/bytes/bit_cast.hpp"

/// exp, expm1, log, log1p, logaddexp, tanh, erf, sin and cos without branches or calls, so that a loop over
/// them becomes vector code. At most 2 units in the last place from the exact value; nan, infinities,
/// overflow and gradual underflow come out as in <cmath>.
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

/// A product, for a sum with another: in a b + rounded(c d) a compiler may fuse a b alone with the addition.
/// In a b + c d it may fuse either, and GCC 16 fuses one in the vectors of a loop and the other in its rest.
/// Adding 0 turns -0 into 0.
template <typename T>
XGRAD_INLINE T rounded(T product) {
  return product + T(0);
}

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
  const auto one = bit_cast<Bits<T>>(T(1));
  return bit_cast<T>((bit_cast<Bits<T>>(n + round_shift<T>) << mantissa_bits<T>)+one);
}

/// e^x = 2^n (1 + q).
template <typename T>
struct Exponential {
  T n, q;
};

/// x = n ln 2 + r with |r| <= ln 2 / 2, and the Taylor polynomial of exp(r) - 1.
template <typename T>
XGRAD_INLINE Exponential<T> exponential(T x) {
  constexpr bool single = std::is_same_v<T, float>;
  constexpr T ln2_high = T(single ? 0x1.62ep-1 : 0x1.62e42feep-1);
  constexpr T ln2_low = T(single ? 0x1.0bfbe8e7bcd5ep-15 : 0x1.a39ef35793c76p-33);
  const T n = (x * T(1.4426950408889634074) + round_shift<T>)-round_shift<T>;
  const T r = (x - n * ln2_high) - n * ln2_low;
  T p;
  if constexpr (single) {
    p = horner(r, T(1.0 / 2), 1.0 / 6, 1.0 / 24, 1.0 / 120, 1.0 / 720, 1.0 / 5040);
  } else {
    p = horner(r, T(1.0 / 2), 1.0 / 6, 1.0 / 24, 1.0 / 120, 1.0 / 720, 1.0 / 5040, 1.0 / 40320, 1.0 / 362880,
               1.0 / 3628800, 1.0 / 39916800, 1.0 / 479001600, 1.0 / 6227020800);
  }
  return {n, r + r * r * p};
}

/// x within the range of exp: exp is infinite above, and 0 below it.
template <typename T>
XGRAD_INLINE T range_of_exp(T x) {
  constexpr bool single = std::is_same_v<T, float>;
  constexpr T highest = single ? 89 : 710, lowest = single ? -105 : -746;
  x = x > highest ? highest : x;
  return x < lowest ? lowest : x;
}

/// 2^n (1 + q), with 2^n in two halves: one alone would overflow before exp does, and would not reach the
/// denormal numbers. `normal` promises that exp(x) is a normal number or nan.
template <bool normal = false, typename T>
XGRAD_INLINE T exp(T x) {
  if constexpr (!normal) x = range_of_exp(x);
  const auto [n, q] = exponential(x);
  const T p = T(1) + q;
  if constexpr (normal) return p * power_of_two(n);
  const T half = (n * T(0.5) + round_shift<T>)-round_shift<T>;
  return p * power_of_two(half) * power_of_two(n - half);
}

/// 2^n q + (2^n - 1), in halves as exp.
template <typename T>
XGRAD_INLINE T expm1(T x) {
  const auto [n, q] = exponential(range_of_exp(x));
  const T half = (n * T(0.5) + round_shift<T>)-round_shift<T>, rest = n - half;
  const T scale = power_of_two(half);
  const T y = (scale * q + (scale - power_of_two(-rest))) * power_of_two(rest);
  return x == T(0) ? x : y;
}

/// exp(x) for x <= 0. Subnormal results are flushed to zero, for arithmetic with them is slow.
template <typename T>
XGRAD_INLINE T exp_nonpositive(T x) {
  constexpr T lowest = std::is_same_v<T, float> ? T(-87.33654) : T(-708.39641);
  const T y = exp<true>(x);
  return x < lowest ? T(0) : y;
}

/// x = 2^k m with m in [sqrt(1/2), sqrt(2)), and log(m) from a series in s = (m - 1) / (m + 1), as in fdlibm.
template <typename T>
XGRAD_INLINE T log(T x) {
  constexpr bool single = std::is_same_v<T, float>;
  constexpr T infinity = std::numeric_limits<T>::infinity();
  constexpr T bias = std::numeric_limits<T>::max_exponent - 1;
  constexpr T ln2_high = T(single ? 0x1.62e3p-1 : 0x1.62e42feep-1);
  constexpr T ln2_low = T(single ? 9.0580006145e-06 : 1.90821492927058770002e-10);
  constexpr auto root = bit_cast<Bits<T>>(T(0.70710678118654752440));
  constexpr auto one = bit_cast<Bits<T>>(T(1));
  constexpr auto mantissa = (Bits<T>(1) << mantissa_bits<T>)-1;

  const T lift = x < std::numeric_limits<T>::min() ? two_to_mantissa_bits<T> : T(1);
  const T lifted = lift > 1 ? T(mantissa_bits<T>) : T(0);
  const Bits<T> bits = bit_cast<Bits<T>>(x * lift) + (one - root);
  const Bits<T> exponent = (bits >> mantissa_bits<T>) | bit_cast<Bits<T>>(two_to_mantissa_bits<T>);
  const T k = bit_cast<T>(exponent) - two_to_mantissa_bits<T> - bias - lifted;
  const T f = bit_cast<T>((bits & mantissa) + root) - T(1);
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
  T y = k * ln2_high - ((square - (rounded(s * (square + rounded(z * series))) + k * ln2_low)) - f);
  y = x == infinity ? infinity : y;
  y = x == T(0) ? -infinity : y;
  y = x < T(0) ? std::numeric_limits<T>::quiet_NaN() : y;
  return x != x ? x : y;
}

/// log of the rounded 1 + x, and the derivative times what was rounded away (as in fdlibm).
template <typename T>
XGRAD_INLINE T log1p(T x) {
  const T sum = T(1) + x;
  const T rest = x - (sum - T(1));
  const T y = log(sum);
  const bool is_end = (sum == T(0)) | (sum == std::numeric_limits<T>::infinity());
  return is_end ? y : std::copysign(y + rest / sum, x);
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
  const T far = T(1) - T(2) / (exp(T(2) * magnitude) + T(1));
  return std::copysign(magnitude < T(0.625) ? near : far, x);
}

/// 1 / (1 + e^-x), through e^-|x|, which does not overflow.
template <typename T>
XGRAD_INLINE T sigmoid_of(T x) {
  const T e = exp(-std::fabs(x));
  return (x < T(0) ? e : T(1)) / (T(1) + e);
}

/// erf near 0 from z = x^2: x + x Q(z).
template <typename T>
XGRAD_INLINE T erf_near_zero(T x, T z) {
  if constexpr (std::is_same_v<T, float>) {
    return x + x * horner(z, 1.28379166e-1F, -3.76125336e-1, 1.12819925e-1, -2.67681349e-2, 4.99119423e-3,
                          -5.96761703e-4);
  } else {
    return x + x * horner(z, T(1.2837916709551257e-1), -3.7612638903183706e-1, 1.1283791670952566e-1,
                          -2.68661706445812e-2, 5.2239776193208944e-3, -8.5483266204960362e-4,
                          1.2055316118709761e-4, -1.4925184187890294e-5, 1.6453475315805496e-6,
                          -1.6259261839033794e-7, 1.3960732976865018e-8, -8.288287913458526e-10);
  }
}

/// erf of a float, given e = exp(-x^2): 1 - e R((|x| - 2.5) / (|x| + 2.5)), R a least-maximum fit of e^(x^2)
/// erfc(x) whose error is weighted by erfc; near 0 x + x Q(x^2), a minimax polynomial by N. Juffa.
XGRAD_INLINE float erf_given_exp(float x, float e) {
  const float magnitude = std::fabs(x);
  const float t = magnitude > 4.0F ? 4.0F : magnitude;  // where 1 - erf rounds away; R does not hold beyond
  const float u = (t - 2.5F) / (t + 2.5F);
  const float r = horner(u, 2.10804924e-1F, -3.71762843e-1, 2.51580894e-1, -1.25052586e-1, 4.14745845e-2);
  const float near = erf_near_zero(x, t * t);
  const float far = std::copysign(1.0F - e * r, x);
  return magnitude > 0.927734375F ? far : near;
}

/// Float: erf_given_exp. Double: 1 - exp(-P(|x|)), and near 0 x + x Q(x^2), polynomials from the Remez
/// algorithm, with the error of P weighted by 1 - erf.
template <typename T>
XGRAD_INLINE T erf(T x) {
  const T magnitude = std::fabs(x);
  if constexpr (std::is_same_v<T, float>) {
    const T t = magnitude > T(4) ? T(4) : magnitude;
    return erf_given_exp(x, exp<true>(-t * t));
  } else {
    const T t = magnitude > T(6) ? T(6) : magnitude;  // where 1 - erf rounds away; P does not hold beyond
    const T p =
        horner(t, T(-1.2837915022807372e-1), -6.366198877166919e-1, -1.0277239689104614e-1,
               1.9129124848813005e-2, 2.0443009169970773e-4, -1.6824272521141555e-3, 5.643309422183472e-4,
               9.0849244392018671e-6, -1.0047708569531659e-4, 5.845854055849686e-5, -2.1276100087818255e-5,
               5.6621046884419255e-6, -1.1422783359317945e-6, 1.742860444630443e-7, -1.9577503497308139e-8,
               1.5305808462602099e-9, -7.4437881920065493e-11, 1.6956331350714434e-12);
    const T near = erf_near_zero(x, t * t);
    const T far = std::copysign(T(1) - exp<true>(t * p - t), x);
    return magnitude > T(0.927734375) ? far : near;
  }
}

/// Phi(x) = erfc(-x / sqrt 2) / 2, the distribution function of the standard normal, given e = exp(-x^2 / 2).
/// Below 0 it does not cancel: its relative error is that of e. With t = |x| / sqrt 2, e^(t^2) erfc(t)
/// (1 + 2 t) is a polynomial in (t - k) / (t + k) from a least-maximum fit of the relative error (the form is
/// that of M. Shepherd and J. Laframboise 1981); near 0 by erf_near_zero.
template <typename T>
XGRAD_INLINE T normal_cdf_given_exp(T x, T e) {
  constexpr bool single = std::is_same_v<T, float>;
  constexpr T furthest = single ? T(10.3) : T(27.3);  // where e is 0
  const T z = x * T(0.70710678118654752440), magnitude = std::fabs(z);
  const T t = magnitude > furthest ? furthest : magnitude;
  constexpr T k = single ? T(2.5) : T(3);
  const T double_and_one = T(1) + T(2) * t, inverse = T(1) / ((t + k) * double_and_one);  // one division
  const T q = (t - k) * (double_and_one * inverse);
  T p;
  if constexpr (single) {
    p = horner(q, T(1.26483818), -0.1223574045, -0.09902392315, 0.1576539561, -0.1029843617, 0.03252609005,
               0.001096613878, -0.003613390805);
  } else {
    p = horner(q, T(1.25300805826972965), -0.135621106124581698, -0.0475622943534507412, 0.129645158702841571,
               -0.119273663415334282, 0.0683080273403224967, -0.0237705149163331807, 0.00252939189077093598,
               0.00188869028908286575, -0.000779833085990206887, -0.000105158793373462567,
               0.000125104375291132574, 4.94168625751849529e-6, -0.0000201178931461964897,
               -6.97476326625547188e-7, 3.50161040886512007e-6, 2.75152717580865352e-7,
               -6.26394144682971667e-7, -4.52785670073423726e-8, 7.55408577094118222e-8);
  }
  const T tail = T(0.5) * (e * p * ((t + k) * inverse));
  const T near = T(0.5) * (T(1) + erf_near_zero(z, z * z));
  const T far = x < T(0) ? tail : T(1) - tail;
  return magnitude > T(0.927734375) ? far : near;
}

/// x <- x Phi(x) to within 3e-5, where V is float or a vector of floats: x if it is positive, minus |x|
/// Phi(-|x|) by a least-maximum fit of |x| times a polynomial, for |x| up to 4.5. nan stays nan.
template <typename V>
XGRAD_INLINE void coarse_gelu(V& x) {
  constexpr float furthest = 4.5F;
  const V zero{}, most = zero + furthest, positive = x < zero ? zero : x;
  V t = x < zero ? -x : x;
  t = t > most ? most : t;
  const V s = t - furthest / 2;
  const V high = (0.643775158e-3F + s * (-0.989309628e-3F +
                                         s * (0.170603729e-3F + s * (0.439067371e-4F + s * -0.1289375e-4F))));
  const V p =
      0.0122209834F +
      s * (-0.0317103453F + s * (0.035741549F + s * (-0.0216314644F + s * (0.00609582802F + s * high))));
  x = positive - t * p;
}

/// x - high - low, rounded once; low is far below high.
template <typename T>
XGRAD_INLINE T reduced(T x, T high, T low) {
  const T r = x - high;
  return r + (((x - r) - high) - low);
}

/// The largest |x| of sine_or_cosine.
template <typename T>
inline constexpr T largest_angle = std::is_same_v<T, float> ? 6144 : 196608;

/// sin(x) or cos(x) for |x| <= largest_angle: |x| = m pi / 2 + r with |r| <= pi / 4, and sin(r) or cos(r) by
/// the quadrant m. pi / 2 is taken in parts, whose products with m are exact but for the last (Cody and Waite
/// 1980); the polynomials are those of Cephes in float, and of fdlibm in double.
template <bool cosine, typename T>
XGRAD_INLINE T sine_or_cosine(T x) {
  constexpr int sign_bit = 8 * sizeof(T) - 1;
  const T magnitude = std::fabs(x);
  const T shifted = magnitude * T(0.63661977236758134308) + round_shift<T>;
  const T m = shifted - round_shift<T>;
  T r, s, c;
  if constexpr (std::is_same_v<T, float>) {
    r = reduced(magnitude - m * 0x1.922p+0F, m * -0x1.2aep-18F, m * -0x1.deap-31F) - m * 0x1.184698p-44F;
    s = horner(r * r, T(-1.6666654611e-1), 8.3321608736e-3, -1.9515295891e-4);
    c = horner(r * r, T(4.166664568298827e-2), -1.388731625493765e-3, 2.443315711809948e-5);
  } else {
    r = reduced(magnitude - m * 0x1.921fb54440000p+0, m * 0x1.68c234c4c0000p-39, m * 0x1.98a2e03707345p-77);
    s = horner(r * r, T(-1.66666666666666324348e-1), 8.33333333332248946124e-3, -1.98412698298579493134e-4,
               2.75573137070700676789e-6, -2.50507602534068634195e-8, 1.58969099521155010221e-10);
    c = horner(r * r, T(4.16666666666666019037e-2), -1.38888888888741095749e-3, 2.48015872894767294178e-5,
               -2.75573143513906633035e-7, 2.08757232129817482790e-9, -1.13596475577881948265e-11);
  }
  const T z = r * r;
  const T sine = r + r * (z * s), cosine_of_r = T(1) - (rounded(T(0.5) * z) - z * z * c);
  const Bits<T> quadrant = bit_cast<Bits<T>>(shifted) + Bits<T>(cosine);
  const T y = (quadrant & 1) != 0 ? cosine_of_r : sine;
  const Bits<T> sign = cosine ? Bits<T>(0) : bit_cast<Bits<T>>(x) ^ bit_cast<Bits<T>>(magnitude);
  return bit_cast<T>(bit_cast<Bits<T>>(y) ^ sign ^ ((quadrant & 2) << (sign_bit - 1)));
}

/// exp(b log |a|) in double, with the sign of an odd power and the exceptions of C's pow. (pow of double is
/// <cmath>'s.)
template <typename T>
XGRAD_INLINE T pow(T a, T b) {
  if constexpr (std::is_same_v<T, double>) {
    return std::pow(a, b);
  } else {
    const T magnitude = std::fabs(a), half = b * T(0.5);
    double power = exp(static_cast<double>(b) * log(static_cast<double>(magnitude)));
    power = magnitude == T(1) ? 1.0 : power;  // where 0 times infinity would come out
    const bool whole = std::trunc(b) == b, even = std::trunc(half) == half;
    const bool negative = bit_cast<Bits<T>>(a) >> (8 * sizeof(T) - 1) != 0;
    const T positive = static_cast<T>(power);
    T y = (negative & whole & !even) ? -positive : positive;
    y = ((a < T(0)) & !whole & (magnitude <= std::numeric_limits<T>::max()))
            ? std::numeric_limits<T>::quiet_NaN()
            : y;
    return ((a == T(1)) | (b == T(0))) ? T(1) : y;
  }
}

/// ln(e^a + e^b). The larger one is taken out, so that nothing overflows; equal infinities differ by nan.
template <typename T>
XGRAD_INLINE T logaddexp(T a, T b) {
  const T larger = a < b ? b : a;
  const T y = larger + log1p(exp(-std::fabs(a - b)));
  return a == b ? larger + T(0.69314718055994530942) : y;
}

}  // namespace xgrad::kernels::vectorized
