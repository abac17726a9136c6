#include <algorithm>
#include <cmath>
#include <functional>
#include <limits>
#include <numeric>
#include <utility>
#include <vector>

#include "../lanes.hpp"
#include "lapack.hpp"
#include "unblocked.hpp"

// Factorisations without LAPACK: Householder's for QR, and Jacobi's rotations for what iterates.
namespace xgrad::kernels {
namespace {

constexpr int most_sweeps = 60;  // ten are many

/// The largest of the numbers' magnitudes, or nan if one is.
template <typename T>
T largest_magnitude(const T* x, std::size_t step, std::size_t count) {
  T largest = 0;
  for (std::size_t i = 0; i < count; ++i)
    if (!(std::abs(x[i * step]) <= largest)) largest = std::abs(x[i * step]);
  return largest;
}

/// The power of two by which all numbers come to at most 1, so that their squares neither overflow nor
/// vanish.
template <typename T>
int scale_exponent(const T* x, std::size_t size) {
  int exponent = 0;
  std::frexp(largest_magnitude(x, 1, size), &exponent);
  return exponent;
}

template <typename T>
T dot(const T* x, const T* y, std::size_t n) {
  return sum_lanes<T>(n, [=](std::size_t i) XGRAD_INLINE_LAMBDA { return x[i] * y[i]; });
}

/// A rotation of two vectors by an angle below 45 degrees, of which this is the tangent.
template <typename T>
struct Rotation {
  /// The one after which the inner product is 0 of vectors with this inner product, where `difference` is the
  /// second's square less the first's.
  Rotation(T difference, T product) {
    const T cotangent = difference / (2 * product);  // of twice the angle
    tangent = std::copysign(T(1), cotangent) / (std::abs(cotangent) + std::hypot(T(1), cotangent));
    cosine = T(1) / std::sqrt(T(1) + tangent * tangent);
    sine = tangent * cosine;
  }

  void operator()(T* x, T* y, std::size_t n) const {
    XGRAD_INDEPENDENT
    for (std::size_t i = 0; i < n; ++i) {
      const T turned = cosine * x[i] - sine * y[i];
      y[i] = sine * x[i] + cosine * y[i];
      x[i] = turned;
    }
  }

  T tangent, cosine, sine;
};

template <typename T>
std::vector<T> identity(std::size_t n) {
  std::vector<T> one(n * n);
  for (std::size_t i = 0; i < n; ++i) one[i * n + i] = T(1);
  return one;
}

/// The places of the keys in ascending order of `before`.
template <typename T, typename Before>
std::vector<std::size_t> ordered(const std::vector<T>& keys, Before before) {
  std::vector<std::size_t> places(keys.size());
  std::iota(places.begin(), places.end(), std::size_t{0});
  std::stable_sort(places.begin(), places.end(),
                   [&](std::size_t a, std::size_t b) { return before(keys[a], keys[b]); });
  return places;
}

/// x (rows, cols) = (1 - tau v v^T) x, where v is 1 and then the numbers below a[0], `lda` apart.
template <typename T>
void reflect(const T* a, std::size_t lda, T tau, T* x, std::size_t ldx, std::size_t rows, std::size_t cols,
             std::vector<T>& products) {
  products.assign(x, x + cols);
  for (std::size_t i = 1; i < rows; ++i) {
    const T factor = a[i * lda];
    for (std::size_t c = 0; c < cols; ++c) products[c] += factor * x[i * ldx + c];
  }
  for (T& product : products) product *= tau;
  for (std::size_t c = 0; c < cols; ++c) x[c] -= products[c];
  for (std::size_t i = 1; i < rows; ++i) {
    const T factor = a[i * lda];
    for (std::size_t c = 0; c < cols; ++c) x[i * ldx + c] -= factor * products[c];
  }
}

/// The reflection of a column onto its first element, which becomes its image; v goes below it. Gives tau.
template <typename T>
T make_reflection(T* a, std::size_t lda, std::size_t rows) {
  if (largest_magnitude(a + lda, lda, rows - 1) == T(0)) return T(0);
  const T largest = largest_magnitude(a, lda, rows);
  T squares = 0;
  for (std::size_t i = 0; i < rows; ++i) squares += (a[i * lda] / largest) * (a[i * lda] / largest);
  const T alpha = a[0], beta = -std::copysign(largest * std::sqrt(squares), alpha);
  for (std::size_t i = 1; i < rows; ++i) a[i * lda] /= alpha - beta;
  a[0] = beta;
  return (beta - alpha) / beta;
}

/// Turns pairs of the k vectors of x (k, n), and those of v (k, k) in the same way, until all are orthogonal.
template <typename T>
bool make_orthogonal(T* x, T* v, std::size_t k, std::size_t n) {
  const T tolerance = std::numeric_limits<T>::epsilon() * std::sqrt(static_cast<T>(n));
  bool turned = true;
  for (int sweep = 0; turned; ++sweep) {
    if (sweep == most_sweeps) return false;
    turned = false;
    for (std::size_t p = 0; p + 1 < k; ++p) {
      for (std::size_t q = p + 1; q < k; ++q) {
        T *const first = x + p * n, *const second = x + q * n;
        const T product = dot(first, second, n);
        const T squares[] = {dot(first, first, n), dot(second, second, n)};
        if (std::abs(product) <= tolerance * std::sqrt(squares[0]) * std::sqrt(squares[1])) continue;
        const Rotation<T> rotation(squares[1] - squares[0], product);
        rotation(first, second, n);
        rotation(v + p * k, v + q * k, k);
        turned = true;
      }
    }
  }
  return true;
}

}  // namespace

template <typename T>
std::size_t cholesky(T* a, std::size_t n) {
  const std::size_t minor = unblocked_cholesky(a, n);
  for (std::size_t i = 0; i < n; ++i) std::fill(a + i * n + i + 1, a + (i + 1) * n, T(0));
  return minor;
}

template <typename T>
void solve_triangular(const T* a, T* b, std::size_t rows, std::size_t cols, Triangular o) {
  substitute(a, b, rows, cols, o);
}

template <typename T>
void cholesky_grad(const T* l, const T* dl, T* da, std::size_t n) {
  copy_lower(dl, da, n);
  unblocked_cholesky_grad(l, da, n);
}

template <typename T>
std::size_t lu(T* a, Pivot* pivots, std::size_t n) {
  return unblocked_lu(a, pivots, n);
}

// Jacobi's method: rotations make the elements beside the diagonal 0 one after the other, again and again.
template <typename T>
bool eigh(T* a, T* w, std::size_t n, bool lower) {
  for (std::size_t i = 0; i < n; ++i)
    for (std::size_t k = 0; k < i; ++k)
      (lower ? a[k * n + i] : a[i * n + k]) = (lower ? a[i * n + k] : a[k * n + i]);
  if (!all_finite(a, n * n)) return false;
  const int exponent = scale_exponent(a, n * n);
  for (std::size_t i = 0; i < n * n; ++i) a[i] = std::ldexp(a[i], -exponent);
  std::vector<T> v = identity<T>(n);  // a vector a row
  const T tolerance = std::numeric_limits<T>::epsilon() / 4 * std::sqrt(dot(a, a, n * n)) /
                      static_cast<T>(std::max<std::size_t>(n, 1));
  bool turned = true;
  for (int sweep = 0; turned; ++sweep) {
    if (sweep == most_sweeps) return false;
    turned = false;
    for (std::size_t p = 0; p + 1 < n; ++p) {
      for (std::size_t q = p + 1; q < n; ++q) {
        const T first = a[p * n + p], second = a[q * n + q], beside = a[p * n + q];
        if (std::abs(beside) <= tolerance) continue;
        const Rotation<T> rotation(second - first, beside);
        rotation(a + p * n, a + q * n, n);
        for (std::size_t i = 0; i < n; ++i) {
          a[i * n + p] = a[p * n + i];
          a[i * n + q] = a[q * n + i];
        }
        a[p * n + p] = first - rotation.tangent * beside;
        a[q * n + q] = second + rotation.tangent * beside;
        a[p * n + q] = a[q * n + p] = T(0);
        rotation(v.data() + p * n, v.data() + q * n, n);
        turned = true;
      }
    }
  }
  std::vector<T> values(n);
  for (std::size_t i = 0; i < n; ++i) values[i] = std::ldexp(a[i * n + i], exponent);
  const std::vector<std::size_t> order = ordered(values, std::less<>());
  for (std::size_t j = 0; j < n; ++j) {
    w[j] = values[order[j]];
    for (std::size_t i = 0; i < n; ++i) a[i * n + j] = v[order[j] * n + i];
  }
  return true;
}

template <typename T>
void qr(T* a, T* q, T* r, std::size_t m, std::size_t n, std::size_t columns) {
  const std::size_t known = columns_before_nan(a, m, n);
  std::vector<T> tau(n), products;
  for (std::size_t j = 0; j < n; ++j) {
    T* const corner = a + j * n + j;
    tau[j] = make_reflection(corner, n, m - j);
    reflect(corner, n, tau[j], corner + 1, n, m - j, n - j - 1, products);
  }
  std::fill_n(r, columns * n, T(0));
  for (std::size_t i = 0; i < n; ++i) std::copy(a + i * n + i, a + (i + 1) * n, r + i * n + i);
  std::fill_n(q, m * columns, T(0));
  for (std::size_t i = 0; i < columns; ++i) q[i * columns + i] = T(1);
  for (std::size_t j = n; j-- > 0;)
    reflect(a + j * n + j, n, tau[j], q + j * columns + j, columns, m - j, columns - j, products);
  fill_with_nan(q, r, m, n, columns, known);
}

// Jacobi's method from one side: V makes the columns of A, or of A^T if those are fewer, orthogonal. In
// descending order they are U diag(s), which a QR decomposition takes apart, and completes where s is 0.
template <typename T>
bool svd(T* a, T* u, T* s, T* vh, std::size_t m, std::size_t n, bool full) {
  if (!all_finite(a, m * n)) return false;
  const bool tall = m >= n;
  const std::size_t k = std::min(m, n), length = std::max(m, n), columns = full ? length : k;
  const int exponent = scale_exponent(a, m * n);
  std::vector<T> x(k * length), v = identity<T>(k), squares(k), sorted(length * k), q(length * columns),
                                r(columns * k);
  for (std::size_t i = 0; i < k; ++i)
    for (std::size_t j = 0; j < length; ++j)
      x[i * length + j] = std::ldexp(tall ? a[j * n + i] : a[i * n + j], -exponent);
  if (!make_orthogonal(x.data(), v.data(), k, length)) return false;
  for (std::size_t i = 0; i < k; ++i) squares[i] = dot(&x[i * length], &x[i * length], length);
  const std::vector<std::size_t> order = ordered(squares, std::greater<>());
  for (std::size_t i = 0; i < k; ++i)
    for (std::size_t j = 0; j < length; ++j) sorted[j * k + i] = x[order[i] * length + j];
  qr(sorted.data(), q.data(), r.data(), length, k, columns);
  for (std::size_t i = 0; i < k; ++i) {
    const T value = r[i * k + i];
    s[i] = std::ldexp(std::abs(value), exponent);
    for (std::size_t j = 0; j < k; ++j) (tall ? vh[i * k + j] : u[j * k + i]) = v[order[i] * k + j];
    if (std::signbit(value))
      for (std::size_t j = 0; j < length; ++j) q[j * columns + i] = -q[j * columns + i];
  }
  for (std::size_t i = 0; i < columns; ++i)
    for (std::size_t j = 0; j < length; ++j)
      (tall ? u[j * columns + i] : vh[i * length + j]) = q[j * columns + i];
  return true;
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
