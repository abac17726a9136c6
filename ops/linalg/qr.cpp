#include "qr.hpp"

#include <array>

#include "../../graph/record_many.hpp"
#include "../../kernels/lapack/lapack.hpp"
#include "../index/indexing.hpp"
#include "../product/matmul.hpp"
#include "../shape/shapes.hpp"
#include "detail/matrices.hpp"
#include "detail/solutions.hpp"
#include "triangle.hpp"

namespace xgrad {
namespace {

/// For m >= n.
template <class T>
std::array<Variable<T>, 2> tall_qr(const Variable<T>& a, bool complete) {
  const std::size_t m = a.shape(-2), n = a.shape(-1), columns = complete ? m : n;
  const Shape batch = detail::batch_axes(a.shape());
  Variable<T> q = detail::empty<T>(detail::matrices(batch, m, columns)),
              r = detail::empty<T>(detail::matrices(batch, columns, n)), lost = detail::copy_of(a);
  T *to_q = detail::data(q), *to_r = detail::data(r), *from = detail::data(lost);
  detail::for_each_matrix(detail::matrix_count(a.shape()), m, [&](std::size_t i) {
    kernels::qr(from + i * m * n, to_q + i * m * columns, to_r + i * columns * n, m, n, columns);
  });
  const detail::ExactProducts exact;
  return record_many<T, 2>(
      ops::qr, {std::move(q), std::move(r)}, Inputs(a), Attributes(complete ? "complete" : "reduced"),
      Saved(Output(0), Output(1)),
      [undefined = columns > n](std::array<Variable<T>, 2> dys, Needs, Variable<T> q,
                                Variable<T> r) -> Grads<T, 1> {
        if (undefined) {
          detail::fail<GraphError>(
              "backward: 'qr' has no gradient in mode complete for matrices with more rows than columns, ",
              q.shape(-2), " and ", r.shape(-1));
        }
        // dA = Q triu(dR) + (Q L + dQ - Q K) R^-T with K = Q^T dQ, P = triu(dR) R^T and L the strict lower
        // triangle of K - K^T + P^T - P: what R^-T amplifies has no terms that cancel
        const auto& [dq, dr] = dys;
        Variable<T> upper, skew, outside;
        if (dr.defined()) {
          upper = triu(dr);
          const Variable<T> p = detail::matrix_product(upper, false, r, true);
          skew = mT(p) - p;
        }
        if (dq.defined()) {
          const Variable<T> k = detail::matrix_product(q, true, dq, false), of_q = k - mT(k);
          skew = skew.defined() ? skew + of_q : of_q;
          if (q.shape(-2) > q.shape(-1)) outside = dq - matmul(q, k);
        }
        Variable<T> inner = matmul(q, tril(skew, -1));
        if (outside.defined()) inner = inner + outside;
        const Variable<T> da =
            detail::triangular_solution(r, inner, {.upper = true, .left = false, .transposed = true});
        return {upper.defined() ? da + matmul(q, upper) : da};
      });
}

}  // namespace

template <class T>
QrResult<T> qr(const Variable<T>& a, QrMode mode) {
  detail::check_matrices("qr", a.shape());
  const detail::ExactProducts exact;
  const auto m = static_cast<std::ptrdiff_t>(a.shape(-2)), n = static_cast<std::ptrdiff_t>(a.shape(-1));
  QrResult<T> result;
  if (m >= n) {
    auto [q, r] = tall_qr(a, mode == QrMode::complete);
    result = {std::move(q), std::move(r)};
  } else {
    const auto [q, r] = tall_qr(narrow(a, -1, 0, m), false);
    result = {q, cat({r, detail::matrix_product(q, true, narrow(a, -1, m, n - m), false)}, -1)};
  }
  if (mode == QrMode::r) result.Q = {};
  return result;
}

#define XGRAD_INSTANTIATE(T) template QrResult<T> qr(const Variable<T>&, QrMode);

XGRAD_INSTANTIATE(float)
XGRAD_INSTANTIATE(double)

}  // namespace xgrad
