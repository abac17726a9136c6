#include <algorithm>
#include <cmath>

#include "lapack.hpp"

namespace xgrad::kernels {
namespace {

template <typename T>
void exchange_rows(T* b, const Pivot* pivots, std::size_t n, std::size_t m, bool backward) {
  for (std::size_t step = 0; step < n; ++step) {
    const std::size_t i = backward ? n - 1 - step : step, other = static_cast<std::size_t>(pivots[i]) - 1;
    if (other != i) std::swap_ranges(b + i * m, b + i * m + m, b + other * m);
  }
}

}  // namespace

template <typename T>
void lu_solve(const T* factors, const Pivot* pivots, std::size_t n, T* b, std::size_t m, bool transposed) {
  const Triangular lower{.upper = false, .transposed = transposed};
  const Triangular upper{.upper = true, .unitriangular = true, .transposed = transposed};
  if (transposed) {
    exchange_rows(b, pivots, n, m, false);
    solve_triangular(factors, b, n, m, upper);
    solve_triangular(factors, b, n, m, lower);
  } else {
    solve_triangular(factors, b, n, m, lower);
    solve_triangular(factors, b, n, m, upper);
    exchange_rows(b, pivots, n, m, true);
  }
}

template <typename T>
Determinant<T> lu_determinant(const T* factors, const Pivot* pivots, std::size_t n) {
  Determinant<T> found{T(1), T(1), T(0)};
  for (std::size_t i = 0; i < n; ++i) {
    const T pivot = factors[i * n + i];
    if (static_cast<std::size_t>(pivots[i]) != i + 1) found.sign = -found.sign;
    if (!(pivot > T(0))) found.sign = pivot < T(0) ? -found.sign : pivot * T(0);
    found.value *= pivot;
    found.logarithm += std::log(std::abs(pivot));
  }
  found.value = std::copysign(found.value, found.sign);
  return found;
}

#define XGRAD_INSTANTIATE(T)                                                          \
  template void lu_solve(const T*, const Pivot*, std::size_t, T*, std::size_t, bool); \
  template Determinant<T> lu_determinant(const T*, const Pivot*, std::size_t);

XGRAD_INSTANTIATE(float)
XGRAD_INSTANTIATE(double)

}  // namespace xgrad::kernels
