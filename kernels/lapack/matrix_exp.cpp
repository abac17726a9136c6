#include "matrix_exp.hpp"

#include <algorithm>
#include <cmath>
#include <vector>

#include "../../base/detail/product_precision.hpp"
#include "../gemm/gemm.hpp"
#include "lapack.hpp"

namespace xgrad::kernels {
namespace {

/// Of the Pade approximant of e^x: the coefficients from the constant one on, and the largest norm for which
/// its error is below the rounding of T.
template <typename T>
struct Pade;
template <>
struct Pade<float> {
  static constexpr double coefficients[] = {17297280, 8648640, 1995840, 277200, 25200, 1512, 56, 1};
  static constexpr double largest_norm = 3.925724783138660;
};
template <>
struct Pade<double> {
  static constexpr double coefficients[] = {64764752532480000,
                                            32382376266240000,
                                            7771770303897600,
                                            1187353796428800,
                                            129060195264000,
                                            10559470521600,
                                            670442572800,
                                            33522128640,
                                            1323241920,
                                            40840800,
                                            960960,
                                            16380,
                                            182,
                                            1};
  static constexpr double largest_norm = 5.371920351148152;
};

template <typename T>
double norm_1(const T* a, std::size_t n) {
  double largest = 0;
  for (std::size_t c = 0; c < n; ++c) {
    double sum = 0;
    for (std::size_t r = 0; r < n; ++r) sum += std::abs(static_cast<double>(a[r * n + c]));
    if (!(sum <= largest)) largest = sum;
  }
  return largest;
}

}  // namespace

template <typename T>
void matrix_exp(const T* a, T* y, std::size_t n) {
  const auto& coefficients = Pade<T>::coefficients;
  const std::size_t size = n * n;
  const double norm = norm_1(a, n);
  if (!std::isfinite(norm)) return static_cast<void>(std::fill_n(y, size, static_cast<T>(norm - norm)));
  const int halvings =
      norm > Pade<T>::largest_norm ? static_cast<int>(std::ceil(std::log2(norm / Pade<T>::largest_norm))) : 0;
  std::vector<T> scaled(a, a + size), square(size), power(size), next(size), odd(size), even(size);
  for (T& element : scaled) element = std::ldexp(element, -halvings);
  const detail::RoundingScope exact(false);
  const auto multiply = [n](const T* left, const T* right, T* to) {
    gemm<T>(1, {left, n, n}, {right, n, n}, 0, {to, n, n});
  };
  multiply(scaled.data(), scaled.data(), square.data());
  for (std::size_t i = 0; i < n; ++i) power[i * n + i] = T(1);
  for (std::size_t k = 0; k < std::size(coefficients); k += 2) {
    for (std::size_t i = 0; i < size; ++i) {
      even[i] += static_cast<T>(coefficients[k]) * power[i];
      odd[i] += static_cast<T>(coefficients[k + 1]) * power[i];
    }
    if (k + 2 == std::size(coefficients)) break;
    multiply(power.data(), square.data(), next.data());
    std::swap(power, next);
  }
  multiply(scaled.data(), odd.data(), next.data());
  for (std::size_t i = 0; i < size; ++i) {
    y[i] = even[i] + next[i];
    even[i] -= next[i];
  }
  std::vector<Pivot> pivots(n);
  lu(even.data(), pivots.data(), n);
  lu_solve(even.data(), pivots.data(), n, y, n, false);
  for (int i = 0; i < halvings; ++i) {
    multiply(y, y, next.data());
    std::copy_n(next.data(), size, y);
  }
}

template void matrix_exp(const float*, float*, std::size_t);
template void matrix_exp(const double*, double*, std::size_t);

}  // namespace xgrad::kernels
