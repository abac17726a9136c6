#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <limits>
#include <utility>

#include "lapack.hpp"

// Factorisations and substitution in plain loops, as fast as LAPACK for small matrices only.
namespace xgrad::kernels {

/// cholesky without the zeros above L.
template <typename T>
std::size_t unblocked_cholesky(T* a, std::size_t n) {
  for (std::size_t j = 0; j < n; ++j) {
    T diagonal = a[j * n + j];
    for (std::size_t k = 0; k < j; ++k) diagonal -= a[j * n + k] * a[j * n + k];
    if (!(diagonal > T(0))) return j + 1;
    const T root = std::sqrt(diagonal), inverse = T(1) / root;
    a[j * n + j] = root;
    for (std::size_t i = j + 1; i < n; ++i) {
      T sum = a[i * n + j];
      for (std::size_t k = 0; k < j; ++k) sum -= a[i * n + k] * a[j * n + k];
      a[i * n + j] = sum * inverse;
    }
  }
  return 0;
}

/// op(A) X = B by substitution, for A to the left.
template <typename T>
void substitute_left(const T* a, T* b, std::size_t n, std::size_t cols, Triangular o) {
  const bool forward = o.upper == o.transposed;
  for (std::size_t step = 0; step < n; ++step) {
    const std::size_t i = forward ? step : n - 1 - step;
    T* const x = b + i * cols;
    for (std::size_t k = forward ? 0 : i + 1; k < (forward ? i : n); ++k) {
      const T factor = o.transposed ? a[k * n + i] : a[i * n + k];
      for (std::size_t c = 0; c < cols; ++c) x[c] -= factor * b[k * cols + c];
    }
    if (o.unitriangular) continue;
    const T inverse = T(1) / a[i * n + i];
    for (std::size_t c = 0; c < cols; ++c) x[c] *= inverse;
  }
}

/// X op(A) = B, row by row.
template <typename T>
void substitute_right(const T* a, T* b, std::size_t rows, std::size_t n, Triangular o) {
  const bool forward = o.upper != o.transposed;
  for (std::size_t r = 0; r < rows; ++r) {
    T* const x = b + r * n;
    for (std::size_t step = 0; step < n; ++step) {
      const std::size_t i = forward ? step : n - 1 - step;
      T sum = x[i];
      for (std::size_t k = forward ? 0 : i + 1; k < (forward ? i : n); ++k)
        sum -= x[k] * (o.transposed ? a[i * n + k] : a[k * n + i]);
      x[i] = o.unitriangular ? sum : sum / a[i * n + i];
    }
  }
}

/// solve_triangular.
template <typename T>
void substitute(const T* a, T* b, std::size_t rows, std::size_t cols, Triangular o) {
  if (o.left) {
    substitute_left(a, b, rows, cols, o);
  } else {
    substitute_right(a, b, rows, cols, o);
  }
}

/// cholesky_grad, where da begins as dL with zeros above it.
template <typename T>
void unblocked_cholesky_grad(const T* l, T* da, std::size_t n) {
  for (std::size_t i = 0; i < n; ++i) {
    T* const row = da + i * n;
    for (std::size_t c = 0; c < n; ++c) row[c] *= l[i * n + i];
    for (std::size_t k = i + 1; k < n; ++k)
      for (std::size_t c = 0; c < n; ++c) row[c] += l[k * n + i] * da[k * n + c];
  }
  for (std::size_t i = 0; i < n; ++i)
    for (std::size_t k = 0; k <= i; ++k) da[k * n + i] = da[i * n + k] *= T(0.5);
  substitute(l, da, n, n, {.transposed = true});
  substitute(l, da, n, n, {.left = false});
}

/// A = P L U, where U has the diagonal of ones, as LAPACK's factors of A^T read by rows: columns are
/// exchanged.
template <typename T>
std::size_t unblocked_lu(T* a, Pivot* pivots, std::size_t n) {
  std::size_t singular = 0;
  for (std::size_t j = 0; j < n; ++j) {
    std::size_t best = j;
    for (std::size_t k = j + 1; k < n; ++k)
      if (std::abs(a[j * n + k]) > std::abs(a[j * n + best])) best = k;
    pivots[j] = static_cast<Pivot>(best + 1);
    if (a[j * n + best] == T(0)) {
      if (singular == 0) singular = j + 1;
      continue;
    }
    if (best != j)
      for (std::size_t i = 0; i < n; ++i) std::swap(a[i * n + j], a[i * n + best]);
    const T inverse = T(1) / a[j * n + j];
    for (std::size_t k = j + 1; k < n; ++k) a[j * n + k] *= inverse;
    for (std::size_t i = j + 1; i < n; ++i) {
      const T factor = a[i * n + j];
      for (std::size_t k = j + 1; k < n; ++k) a[i * n + k] -= factor * a[j * n + k];
    }
  }
  return singular;
}

/// to (n, n) = the lower triangle of `from`, and 0 above it.
template <typename T>
void copy_lower(const T* from, T* to, std::size_t n) {
  for (std::size_t i = 0; i < n; ++i) {
    std::copy_n(from + i * n, i + 1, to + i * n);
    std::fill(to + i * n + i + 1, to + (i + 1) * n, T(0));
  }
}

/// With nan, algorithms that iterate may give numbers, or loop.
template <typename T>
bool all_finite(const T* x, std::size_t size) {
  return std::all_of(x, x + size, [](T element) { return std::isfinite(element); });
}

/// The number of columns before the first that holds a nan.
template <typename T>
std::size_t columns_before_nan(const T* a, std::size_t m, std::size_t n) {
  std::size_t first = n;
  for (std::size_t i = 0; i < m; ++i)
    for (std::size_t j = 0; j < first; ++j)
      if (std::isnan(a[i * n + j])) first = j;
  return first;
}

/// Makes the columns of Q and R from `known` on nan: algorithms take a nan that scales a vector for 0, as
/// OpenBLAS 0.3.21 does.
template <typename T>
void fill_with_nan(T* q, T* r, std::size_t m, std::size_t n, std::size_t columns, std::size_t known) {
  if (known == n) return;
  constexpr T nan = std::numeric_limits<T>::quiet_NaN();
  for (std::size_t i = 0; i < m; ++i) std::fill(q + i * columns + known, q + (i + 1) * columns, nan);
  for (std::size_t i = 0; i < n; ++i) std::fill(r + i * n + std::max(i, known), r + (i + 1) * n, nan);
}

}  // namespace xgrad::kernels
