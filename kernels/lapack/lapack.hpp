#pragma once

#include <cstddef>

// Factorisations of one matrix, row-major and contiguous: LAPACK's, and loops for small ones, where its calls
// cost more than they compute.
namespace xgrad::kernels {

/// Column and row exchanges as LAPACK notes them.
using Pivot = int;

/// a (n, n) = L with A = L L^T, of which the lower triangle is read; above it 0. Gives 0, or the order of the
/// first leading minor that is not positive.
template <typename T>
std::size_t cholesky(T* a, std::size_t n);

/// da (n, n), symmetric, from dl, of which the lower triangle is read: L^-T P L^-1, where P is symmetric with
/// the lower triangle of L^T dL / 2.
template <typename T>
void cholesky_grad(const T* l, const T* dl, T* da, std::size_t n);

/// Which triangular system op(A) X = B or X op(A) = B is to be solved.
struct Triangular {
  bool upper = false;          ///< which triangle of A is read
  bool left = true;            ///< whether A stands to the left of X
  bool unitriangular = false;  ///< the diagonal is 1 and not read
  bool transposed = false;     ///< op(A) = A^T
};

/// b (rows, cols) = X for A (rows, rows), or (cols, cols) if it stands to the right.
template <typename T>
void solve_triangular(const T* a, T* b, std::size_t rows, std::size_t cols, Triangular options);

/// a (n, n) and pivots (n) = the factors of A = L U with rows exchanged; which of the two has the diagonal of
/// ones is lu_solve's and lu_determinant's business. Gives 0, or the place, from 1, of the first pivot that
/// is 0.
template <typename T>
std::size_t lu(T* a, Pivot* pivots, std::size_t n);

/// b (n, m) = X with A X = B, or with A^T X = B if `transposed`, from the factors of A.
template <typename T>
void lu_solve(const T* factors, const Pivot* pivots, std::size_t n, T* b, std::size_t m, bool transposed);

/// det A, its sign, which is 0 if A is singular, and log |det A|, which neither overflows nor underflows.
template <typename T>
struct Determinant {
  T value, sign, logarithm;
};
template <typename T>
Determinant<T> lu_determinant(const T* factors, const Pivot* pivots, std::size_t n);

/// a (n, n) = V and w (n) with A = V diag(w) V^T, w ascending, for a symmetric A of which one triangle is
/// read. False if the algorithm did not converge, as for nan and infinite elements.
template <typename T>
bool eigh(T* a, T* w, std::size_t n, bool lower);

/// q (m, columns) and r (columns, n) with A = Q R for a (m, n), m >= n, which is lost; columns is n, or m for
/// all of Q.
template <typename T>
void qr(T* a, T* q, T* r, std::size_t m, std::size_t n, std::size_t columns);

/// u (m, p), s (k) and vh (q, n) with A = U diag(s) Vh for a (m, n), which is lost; k = min(m, n), and p = q
/// = k, or p = m and q = n if `full`. False if the algorithm did not converge, as for nan and infinite
/// elements.
template <typename T>
bool svd(T* a, T* u, T* s, T* vh, std::size_t m, std::size_t n, bool full);

}  // namespace xgrad::kernels
