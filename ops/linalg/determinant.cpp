#include "determinant.hpp"

#include <algorithm>
#include <limits>
#include <vector>

#include "../../graph/kernel_backward.hpp"
#include "../../kernels/gemm/gemm.hpp"
#include "../../kernels/lapack/lapack.hpp"
#include "../shape/shapes.hpp"
#include "detail/matrices.hpp"
#include "detail/solutions.hpp"

namespace xgrad {
namespace ops {

constexpr Op cofactors("cofactors", {"a", "b"});

}  // namespace ops

namespace {

using detail::LuFactors;

template <class T>
using Lu = std::shared_ptr<const LuFactors<T>>;

/// Calls f(number, determinant) for each matrix.
template <class T, class F>
void for_each_determinant(const LuFactors<T>& lu, std::size_t n, const F& f) {
  for (std::size_t i = 0; i < lu.zero_pivots.size(); ++i) {
    f(i, kernels::lu_determinant(lu.factors.data() + i * n * n, lu.pivots.data() + i * n, n));
  }
}

/// a^-T (..., n, n)
template <class T>
Variable<T> inverse_transposed(const Variable<T>& a, const Lu<T>& lu) {
  const std::size_t n = a.shape(-1);
  Variable<T> ones = detail::empty<T>(a.shape());
  T* to = detail::data(ones);
  for (std::size_t i = 0; i < ones.size(); ++i) to[i] = i / n % n == i % n ? T{1} : T{0};
  return detail::lu_solution(a, lu, ones, true);
}

/// x (...) beside each matrix: (..., 1, 1)
template <class T>
Variable<T> as_matrices(const Variable<T>& x) {
  return unsqueeze(unsqueeze(x, -1), -1);
}

/// log |det a|, nan where the determinant is negative unless `of_negative`.
template <class T>
Variable<T> log_determinant(StaticOp<1, 0> op, const Variable<T>& a, const Lu<T>& lu, bool of_negative) {
  Variable<T> y = detail::empty<T>(detail::batch_axes(a.shape()));
  T* to = detail::data(y);
  for_each_determinant(*lu, a.shape(-1), [&](std::size_t i, const auto& found) {
    to[i] = found.sign < T(0) && !of_negative ? std::numeric_limits<T>::quiet_NaN() : found.logarithm;
  });
  return record<T>(op, std::move(y), Inputs(a), Saved(a),
                   [lu](Variable<T> dy, Needs, Variable<T> a) -> Grads<T, 1> {
                     return {as_matrices(dy) * inverse_transposed(a, lu)};
                   });
}

/// y_ij = e_ikl e_jmn a_km b_ln, with e the sign of a permutation, for matrices of order 3: symmetric in a
/// and b, and each the gradient of the other, so that it is closed under differentiation. Half of it with b =
/// a are the cofactors.
template <class T>
Variable<T> mixed_cofactors(const Variable<T>& a, const Variable<T>& b) {
  Variable<T> y = detail::empty<T>(a.shape());
  const T *left = detail::data(a), *right = detail::data(b);
  T* to = detail::data(y);
  detail::for_each_matrix(detail::matrix_count(a.shape()), 3, [&](std::size_t number) {
    const T *p = left + 9 * number, *q = right + 9 * number;
    for (std::size_t i = 0; i < 3; ++i) {
      const std::size_t k = (i + 1) % 3 * 3, l = (i + 2) % 3 * 3;
      for (std::size_t j = 0; j < 3; ++j) {
        const std::size_t m = (j + 1) % 3, n = (j + 2) % 3;
        to[9 * number + 3 * i + j] =
            p[k + m] * q[l + n] - p[k + n] * q[l + m] + p[l + n] * q[k + m] - p[l + m] * q[k + n];
      }
    }
  });
  return record<T>(ops::cofactors, std::move(y), Inputs(a, b),
                   Saved(if_requires_grad(b, a), if_requires_grad(a, b)),
                   [](Variable<T> dy, Needs needs, Variable<T> a, Variable<T> b) -> Grads<T, 2> {
                     Grads<T, 2> grads;
                     if (needs[0]) grads[0] = mixed_cofactors(b, dy);
                     if (needs[1]) grads[1] = mixed_cofactors(a, dy);
                     return grads;
                   });
}

/// The cofactors of matrices of order 2: linear, and their own gradient.
template <class T>
Variable<T> cofactors_of_two(const Variable<T>& a) {
  Variable<T> y = detail::empty<T>(a.shape());
  const T* from = detail::data(a);
  T* to = detail::data(y);
  for (std::size_t i = 0; i < a.size(); i += 4) {
    to[i] = from[i + 3];
    to[i + 1] = -from[i + 2];
    to[i + 2] = -from[i + 1];
    to[i + 3] = from[i];
  }
  return record<T>(ops::cofactors, std::move(y), Inputs(a), Saved(),
                   [](Variable<T> dy, Needs) -> Grads<T, 1> { return {cofactors_of_two(dy)}; });
}

/// The cofactors of any matrix: det(U V^T) U diag(products of the other singular values) V^T.
template <class T>
void cofactors_of_singular(const T* a, std::size_t n, T* to) {
  const detail::ExactProducts exact;
  std::vector<T> copy(a, a + n * n), u(n * n), s(n), vh(n * n), rotation(n * n);
  std::vector<kernels::Pivot> pivots(n);
  kernels::svd(copy.data(), u.data(), s.data(), vh.data(), n, n, true);
  kernels::gemm<T>(1, {u.data(), n, n}, {vh.data(), n, n}, 0, {rotation.data(), n, n});
  kernels::lu(rotation.data(), pivots.data(), n);
  const T sign = kernels::lu_determinant(rotation.data(), pivots.data(), n).sign;
  for (std::size_t k = 0; k < n; ++k) {
    T product = sign;
    for (std::size_t other = 0; other < n; ++other)
      if (other != k) product *= s[other];
    for (std::size_t i = 0; i < n; ++i) u[i * n + k] *= product;
  }
  kernels::gemm<T>(1, {u.data(), n, n}, {vh.data(), n, n}, 0, {to, n, n});
}

/// The same of a batch, on arrays.
template <class T>
Variable<T> cofactors(const Variable<T>& a, const LuFactors<T>& lu) {
  const std::size_t n = a.shape(-1);
  Variable<T> y = detail::empty<T>(a.shape());
  const T* from = detail::data(a);
  T* to = detail::data(y);
  std::vector<T> determinants(lu.zero_pivots.size());
  for_each_determinant(lu, n, [&](std::size_t i, const auto& found) { determinants[i] = found.value; });
  detail::for_each_matrix(determinants.size(), n, [&](std::size_t i) {
    T* const one = to + i * n * n;
    if (determinants[i] == T(0)) return cofactors_of_singular(from + i * n * n, n, one);
    std::fill_n(one, n * n, T{0});
    for (std::size_t k = 0; k < n; ++k) one[k * n + k] = determinants[i];
    kernels::lu_solve(lu.factors.data() + i * n * n, lu.pivots.data() + i * n, n, one, n, true);
  });
  return y;
}

template <class T>
Variable<T> small_determinant(const Variable<T>& a) {
  const std::size_t n = a.shape(-1);
  Variable<T> y = detail::empty<T>(detail::batch_axes(a.shape()));
  const T* m = detail::data(a);
  T* to = detail::data(y);
  for (std::size_t i = 0; i < y.size(); ++i, m += n * n) {
    if (n == 0) to[i] = T{1};
    if (n == 1) to[i] = m[0];
    if (n == 2) to[i] = m[0] * m[3] - m[1] * m[2];
    if (n == 3) {
      to[i] = m[0] * (m[4] * m[8] - m[5] * m[7]) - m[1] * (m[3] * m[8] - m[5] * m[6]) +
              m[2] * (m[3] * m[7] - m[4] * m[6]);
    }
  }
  return record<T>(ops::det, std::move(y), Inputs(a), Saved(a),
                   [n](Variable<T> dy, Needs needs, Variable<T> a) -> Grads<T, 1> {
                     if (n <= 1) return {expand(as_matrices(dy), needs.shape(0))};
                     if (n == 2) return {as_matrices(dy) * cofactors_of_two(a)};
                     return {as_matrices(dy * T(0.5)) * mixed_cofactors(a, a)};
                   });
}

}  // namespace

template <class T>
SlogdetResult<T> slogdet(const Variable<T>& a) {
  const std::size_t n = detail::matrix_order("slogdet", a.shape());
  const Lu<T> lu = detail::lu_factors(a);
  SlogdetResult<T> result{detail::empty<T>(detail::batch_axes(a.shape())),
                          log_determinant(ops::slogdet, a, lu, true)};
  T* signs = detail::data(result.sign);
  for_each_determinant(*lu, n, [&](std::size_t i, const auto& found) { signs[i] = found.sign; });
  return result;
}

template <class T>
Variable<T> logdet(const Variable<T>& a) {
  detail::matrix_order("logdet", a.shape());
  return log_determinant(ops::logdet, a, detail::lu_factors(a), false);
}

template <class T>
Variable<T> det(const Variable<T>& a) {
  const std::size_t n = detail::matrix_order("det", a.shape());
  if (n <= 3) return small_determinant(a);
  const Lu<T> lu = detail::lu_factors(a);
  Variable<T> y = detail::empty<T>(detail::batch_axes(a.shape()));
  T* to = detail::data(y);
  for_each_determinant(*lu, n, [&](std::size_t i, const auto& found) { to[i] = found.value; });
  return record<T>(
      ops::det, std::move(y), Inputs(a), Saved(a, Output()),
      KernelBackward([lu](Variable<T> dy, Needs, Variable<T> a,
                          Variable<T>) -> Grads<T, 1> { return {as_matrices(dy) * cofactors(a, *lu)}; },
                     [lu](Variable<T> dy, Needs, Variable<T> a, Variable<T> y) -> Grads<T, 1> {
                       return {as_matrices(dy * y) * inverse_transposed(a, lu)};
                     }));
}

#define XGRAD_INSTANTIATE(T)                             \
  template SlogdetResult<T> slogdet(const Variable<T>&); \
  template Variable<T> logdet(const Variable<T>&);       \
  template Variable<T> det(const Variable<T>&);

XGRAD_INSTANTIATE(float)
XGRAD_INSTANTIATE(double)

}  // namespace xgrad
