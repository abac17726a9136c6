#include "svd.hpp"

#include <algorithm>
#include <array>
#include <limits>
#include <vector>

#include "../../graph/record_many.hpp"
#include "../../kernels/gemm/gemm.hpp"
#include "../../kernels/lapack/lapack.hpp"
#include "../index/indexing.hpp"
#include "../index/masked_fill.hpp"
#include "../product/matmul.hpp"
#include "../shape/shapes.hpp"
#include "detail/matrices.hpp"
#include "diagonal.hpp"

namespace xgrad {
namespace {

using detail::matrix_product;

/// The factors of a batch on arrays.
template <class T>
std::array<Variable<T>, 3> decomposed(const char* op, const Variable<T>& a, bool full) {
  const std::size_t m = a.shape(-2), n = a.shape(-1), k = std::min(m, n), p = full ? m : k, q = full ? n : k;
  const std::size_t count = detail::matrix_count(a.shape());
  const Shape batch = detail::batch_axes(a.shape());
  Shape values = batch;
  values.push_back(k);
  std::array<Variable<T>, 3> factors{detail::empty<T>(detail::matrices(batch, m, p)),
                                     detail::empty<T>(values),
                                     detail::empty<T>(detail::matrices(batch, q, n))};
  Variable<T> lost = detail::copy_of(a);
  T *from = detail::data(lost), *u = detail::data(factors[0]), *s = detail::data(factors[1]),
    *vh = detail::data(factors[2]);
  std::vector<char> converged(count);
  detail::for_each_matrix(count, std::max(m, n), [&](std::size_t i) {
    converged[i] =
        kernels::svd(from + i * m * n, u + i * m * p, s + i * k, vh + i * q * n, m, n, full) ? 1 : 0;
  });
  const auto failed = std::find(converged.begin(), converged.end(), 0);
  if (failed != converged.end()) {
    detail::fail<ValueError>(
        op, ": ", detail::matrix_place(a.shape(), static_cast<std::size_t>(failed - converged.begin())),
        " gives no singular values, the algorithm did not converge");
  }
  return factors;
}

template <class T>
void add_to(Variable<T>& sum, const Variable<T>& more) {
  sum = sum.defined() ? sum + more : more;
}

/// x - y y^T x for y with orthonormal columns.
template <class T>
Variable<T> rejected(const Variable<T>& x, const Variable<T>& y) {
  return x - matmul(y, matrix_product(y, true, x, false));
}

/// U, S and Vh without the vectors beyond k.
template <class T>
std::array<Variable<T>, 3> recorded(const Variable<T>& a, std::array<Variable<T>, 3> factors) {
  const std::size_t m = a.shape(-2), n = a.shape(-1), k = std::min(m, n);
  const detail::ExactProducts exact;
  return record_many<T, 3>(
      ops::svd, std::move(factors), Inputs(a), Attributes(false), Saved(Output(0), Output(1), Output(2)),
      [m, n, k](std::array<Variable<T>, 3> dys, Needs, Variable<T> u, Variable<T> s,
                Variable<T> vh) -> Grads<T, 1> {
        const auto& [du, ds, dvh] = dys;
        const Variable<T> rows = unsqueeze(s, -1), cols = unsqueeze(s, -2);
        Variable<T> inner, outer;
        if (du.defined() || dvh.defined()) {
          Mask diagonal = Mask::from_shape({k, k});
          for (std::size_t i = 0; i < k * k; ++i) diagonal.data()[i] = i / k == i % k;
          const Variable<T> e = masked_fill((cols - rows) * (cols + rows), diagonal, T{1});
          const auto skew = [](const Variable<T>& x) { return x - mT(x); };
          if (du.defined()) add_to(inner, skew(matrix_product(u, true, du, false)) / e * cols);
          if (dvh.defined()) add_to(inner, rows * (skew(matrix_product(vh, false, dvh, true)) / e));
        }
        if (ds.defined()) add_to(inner, diag_embed(ds));
        Variable<T> da = matmul(matmul(u, inner), vh);
        if (du.defined() && m > k) da = da + matmul(rejected(du, u) / cols, vh);
        if (dvh.defined() && n > k) da = da + matmul(u, mT(rejected(mT(dvh), mT(vh))) / rows);
        return {da};
      });
}

}  // namespace

template <class T>
SvdResult<T> svd(const Variable<T>& a, SvdOptions options) {
  const bool full_matrices = options.full_matrices;
  detail::check_matrices("svd", a.shape());
  const auto m = static_cast<std::ptrdiff_t>(a.shape(-2)), n = static_cast<std::ptrdiff_t>(a.shape(-1)),
             k = std::min(m, n);
  std::array<Variable<T>, 3> all = decomposed("svd", a, full_matrices);
  if (!full_matrices || m == n) {
    auto [u, s, vh] = recorded(a, std::move(all));
    return {u, s, vh};
  }
  const auto [u, s, vh] = recorded(a, {narrow(all[0], -1, 0, k), all[1], narrow(all[2], -2, 0, k)});
  return {m > k ? cat({u, narrow(all[0], -1, k, m - k)}, -1) : u, s,
          n > k ? cat({vh, narrow(all[2], -2, k, n - k)}, -2) : vh};
}

template <class T>
Variable<T> pinv(const Variable<T>& a, std::optional<double> rtol) {
  detail::check_matrices("pinv", a.shape());
  if (rtol && !(*rtol >= 0)) detail::fail<ValueError>("pinv: rtol must be from 0, got ", *rtol);
  const std::size_t m = a.shape(-2), n = a.shape(-1), k = std::min(m, n);
  const T least =
      rtol ? static_cast<T>(*rtol) : static_cast<T>(std::max(m, n)) * std::numeric_limits<T>::epsilon();
  auto [u, s, vh] = decomposed("pinv", a, false);
  Variable<T> p = detail::empty<T>(detail::matrices(detail::batch_axes(a.shape()), n, m));
  T *left = detail::data(u), *right = detail::data(vh), *to = detail::data(p);
  const T* values = detail::data(std::as_const(s));
  const detail::ExactProducts exact;
  detail::for_each_matrix(detail::matrix_count(a.shape()), std::max(m, n), [&](std::size_t i) {
    T* const of_v = right + i * k * n;
    for (std::size_t r = 0; r < k; ++r) {
      const T value = values[i * k + r], factor = value > least * values[i * k] ? T(1) / value : T(0);
      for (std::size_t c = 0; c < n; ++c) of_v[r * n + c] *= factor;
    }
    kernels::gemm<T>(1, kernels::Matrix<const T>(of_v, k, n).transpose(),
                     kernels::Matrix<const T>(left + i * m * k, m, k).transpose(), 0, {to + i * n * m, n, m});
  });
  return record<T>(ops::pinv, std::move(p), Inputs(a), Attributes(static_cast<double>(least)),
                   Saved(a, Output()),
                   [](Variable<T> dp, Needs, Variable<T> a, Variable<T> p) -> Grads<T, 1> {
                     const Variable<T> dpt = mT(dp), pt = mT(p);
                     const Variable<T> inner = matmul(matmul(pt, dp), pt);
                     const Variable<T> left = matmul(dpt - matmul(a, matmul(p, dpt)), matmul(p, pt));
                     const Variable<T> right = matmul(matmul(pt, p), dpt - matmul(matmul(dpt, p), a));
                     return {left + right - inner};
                   });
}

#define XGRAD_INSTANTIATE(T)                                 \
  template SvdResult<T> svd(const Variable<T>&, SvdOptions); \
  template Variable<T> pinv(const Variable<T>&, std::optional<double>);

XGRAD_INSTANTIATE(float)
XGRAD_INSTANTIATE(double)

}  // namespace xgrad
