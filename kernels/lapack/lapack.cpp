#include "lapack.hpp"

#include <algorithm>
#include <cmath>
#include <utility>
#include <vector>

#include "../gemm/blas_call.hpp"
#include "../gemm/xtensor_blas.hpp"
#include "unblocked.hpp"

#include <xtensor-blas/xlapack.hpp>

// LAPACK counts by columns: it sees the transposes of what lies here by rows. Each call is chosen so that
// nothing has to be transposed for it.
namespace xgrad::kernels {
namespace {

static_assert(std::is_same_v<Pivot, xt::blas_index_t>);

// Up to this order loops are faster than a call.
constexpr std::size_t small_order = 8;

Pivot index(std::size_t i) { return static_cast<Pivot>(i); }

/// Calls `routine(work, length)` twice: with a length of -1 it says how much memory it wants.
template <typename T, typename Routine>
Pivot with_workspace(const Routine& routine) {
  T length;
  routine(&length, Pivot{-1});
  std::vector<T> work(std::max<std::size_t>(1, static_cast<std::size_t>(length)));
  return routine(work.data(), index(work.size()));
}

template <typename T>
void transpose_in_place(T* a, std::size_t n) {
  for (std::size_t i = 0; i < n; ++i)
    for (std::size_t k = 0; k < i; ++k) std::swap(a[i * n + k], a[k * n + i]);
}

/// a = B^-1 A B^-T by columns, of which the lower triangles are read and written. xtensor-blas's own function
/// for it does not compile.
void divide_both_sides(float* a, const float* b, Pivot n) {
  Pivot type = 1, info = 0;
  cxxlapack::ssygst_(&type, "L", &n, a, &n, b, &n, &info);
}
void divide_both_sides(double* a, const double* b, Pivot n) {
  Pivot type = 1, info = 0;
  cxxlapack::dsygst_(&type, "L", &n, a, &n, b, &n, &info);
}

/// The same for da with the lower triangle of dL, and zeros above it, by half the multiplications: the
/// product is computed where it is read, column by column, and both sides are divided in one call. That wants
/// L to the left, where L^T is; backwards in memory, a matrix is its transpose with both orders turned round.
template <typename T>
void large_cholesky_grad(const T* l, T* da, std::size_t n) {
  constexpr std::size_t columns = 64;
  const BlasCall call;
  for (std::size_t j = 0; j < n; j += columns) {
    cxxblas::trmm<Pivot>(cxxblas::RowMajor, cxxblas::Left, cxxblas::Lower, cxxblas::Trans, cxxblas::NonUnit,
                         index(n - j), index(std::min(columns, n - j)), T(0.5), l + j * n + j, index(n),
                         da + j * n + j, index(n));
  }
  std::vector<T> turned(l, l + n * n);
  std::reverse(turned.begin(), turned.end());
  std::reverse(da, da + n * n);
  divide_both_sides(da, turned.data(), index(n));
  std::reverse(da, da + n * n);
  for (std::size_t i = 0; i < n; ++i)
    for (std::size_t k = 0; k < i; ++k) da[k * n + i] = da[i * n + k];
}

}  // namespace

template <typename T>
std::size_t cholesky(T* a, std::size_t n) {
  std::size_t minor = 0;
  if (n <= small_order) {
    minor = unblocked_cholesky(a, n);
  } else {
    const BlasCall call;
    minor = static_cast<std::size_t>(cxxlapack::potrf<Pivot>('U', index(n), a, index(n)));
    for (std::size_t i = 0; i < n && minor == 0; ++i)
      if (std::isnan(a[i * n + i])) minor = i + 1;  // which OpenBLAS may overlook
  }
  for (std::size_t i = 0; i < n; ++i) std::fill(a + i * n + i + 1, a + (i + 1) * n, T(0));
  return minor;
}

template <typename T>
void solve_triangular(const T* a, T* b, std::size_t rows, std::size_t cols, Triangular o) {
  if (rows == 0 || cols == 0) return;
  const std::size_t n = o.left ? rows : cols;
  if (n <= small_order) return substitute(a, b, rows, cols, o);
  const BlasCall call;
  cxxblas::trsm<Pivot>(
      cxxblas::RowMajor, o.left ? cxxblas::Left : cxxblas::Right, o.upper ? cxxblas::Upper : cxxblas::Lower,
      o.transposed ? cxxblas::Trans : cxxblas::NoTrans, o.unitriangular ? cxxblas::Unit : cxxblas::NonUnit,
      index(rows), index(cols), T(1), a, index(n), b, index(cols));
}

template <typename T>
void cholesky_grad(const T* l, const T* dl, T* da, std::size_t n) {
  copy_lower(dl, da, n);
  if (n > small_order) return large_cholesky_grad(l, da, n);
  unblocked_cholesky_grad(l, da, n);
}

// LAPACK factors A^T = P L' U' with ones on the diagonal of L'. Read by rows these are A = U'^T L'^T P^T: a
// lower triangle times a unit upper one, with columns exchanged.
template <typename T>
std::size_t lu(T* a, Pivot* pivots, std::size_t n) {
  if (n <= small_order) return unblocked_lu(a, pivots, n);
  const BlasCall call;
  return static_cast<std::size_t>(cxxlapack::getrf<Pivot>(index(n), index(n), a, index(n), pivots));
}

template <typename T>
bool eigh(T* a, T* w, std::size_t n, bool lower) {
  if (n == 0) return true;
  for (std::size_t r = 0; r < n; ++r) {
    const std::size_t first = lower ? 0 : r, last = lower ? r + 1 : n;
    if (!all_finite(a + r * n + first, last - first)) return false;
  }
  Pivot integers = 0;
  const char triangle = lower ? 'U' : 'L';
  const BlasCall call;
  T length;
  cxxlapack::syevd<Pivot>('V', triangle, index(n), a, index(n), w, &length, -1, &integers, -1);
  std::vector<T> work(static_cast<std::size_t>(length));
  std::vector<Pivot> more(static_cast<std::size_t>(integers));
  const Pivot failed = cxxlapack::syevd<Pivot>('V', triangle, index(n), a, index(n), w, work.data(),
                                               index(work.size()), more.data(), index(more.size()));
  transpose_in_place(a, n);
  return failed == 0;
}

// A^T = L' Q' by columns is A = Q R by rows.
template <typename T>
void qr(T* a, T* q, T* r, std::size_t m, std::size_t n, std::size_t columns) {
  std::fill_n(r, columns * n, T(0));
  std::fill_n(q, m * columns, T(0));
  if (m == 0 || columns == 0) return;
  std::vector<T> tau(std::max<std::size_t>(1, n));
  const std::size_t known = columns_before_nan(a, m, n);
  const BlasCall call;
  if (n > 0) {
    with_workspace<T>([&](T* work, Pivot length) {
      return cxxlapack::gelqf<Pivot>(index(n), index(m), a, index(n), tau.data(), work, length);
    });
  }
  for (std::size_t i = 0; i < n; ++i) std::copy(a + i * n + i, a + (i + 1) * n, r + i * n + i);
  for (std::size_t i = 0; i < m; ++i) std::copy_n(a + i * n, n, q + i * columns);
  with_workspace<T>([&](T* work, Pivot length) {
    return cxxlapack::orglq<Pivot>(index(columns), index(m), index(n), q, index(columns), tau.data(), work,
                                   length);
  });
  fill_with_nan(q, r, m, n, columns, known);
}

// A^T = V diag(s) U^T by columns: LAPACK's U is Vh by rows, its Vh is U.
template <typename T>
bool svd(T* a, T* u, T* s, T* vh, std::size_t m, std::size_t n, bool full) {
  const std::size_t k = std::min(m, n), p = full ? m : k;
  if (k == 0) {
    if (!full) return true;
    std::fill_n(u, m * m, T(0));
    std::fill_n(vh, n * n, T(0));
    for (std::size_t i = 0; i < m; ++i) u[i * m + i] = T(1);
    for (std::size_t i = 0; i < n; ++i) vh[i * n + i] = T(1);
    return true;
  }
  if (!all_finite(a, m * n)) return false;
  std::vector<Pivot> integers(8 * k);
  const BlasCall call;
  return 0 == with_workspace<T>([&](T* work, Pivot length) {
           return cxxlapack::gesdd<Pivot>(full ? 'A' : 'S', index(n), index(m), a, index(n), s, vh, index(n),
                                          u, index(p), work, length, integers.data());
         });
}

#define XGRAD_INSTANTIATE(T)                                                          \
  template std::size_t cholesky(T*, std::size_t);                                     \
  template void cholesky_grad(const T*, const T*, T*, std::size_t);                   \
  template void solve_triangular(const T*, T*, std::size_t, std::size_t, Triangular); \
  template std::size_t lu(T*, Pivot*, std::size_t);                                   \
  template bool eigh(T*, T*, std::size_t, bool);                                      \
  template void qr(T*, T*, T*, std::size_t, std::size_t, std::size_t);                \
  template bool svd(T*, T*, T*, T*, std::size_t, std::size_t, bool);

XGRAD_INSTANTIATE(float)
XGRAD_INSTANTIATE(double)

}  // namespace xgrad::kernels
