#include "solve.hpp"

#include <algorithm>

#include "../../graph/record.hpp"
#include "../product/matmul.hpp"
#include "../shape/shapes.hpp"
#include "detail/matrices.hpp"
#include "detail/solutions.hpp"

namespace xgrad {

template <class T>
std::shared_ptr<const detail::LuFactors<T>> detail::lu_factors(const Variable<T>& a) {
  const std::size_t n = a.shape(-1), count = matrix_count(a.shape());
  auto lu = std::make_shared<LuFactors<T>>();
  lu->factors = a.value();
  lu->pivots.resize(count * n);
  lu->zero_pivots.resize(count);
  for_each_matrix(count, n, [&](std::size_t i) {
    lu->zero_pivots[i] = kernels::lu(lu->factors.data() + i * n * n, lu->pivots.data() + i * n, n);
  });
  return lu;
}

template <class T>
Variable<T> detail::lu_solution(const Variable<T>& a, const std::shared_ptr<const LuFactors<T>>& lu,
                                const Variable<T>& b, bool transposed) {
  const detail::ExactProducts exact;
  const std::size_t n = a.shape(-1), m = b.shape(-1);
  Variable<T> x = copy_of(b);
  T* to = data(x);
  for_each_matrix(matrix_count(b.shape()), std::max(n, m), [&](std::size_t i) {
    kernels::lu_solve(lu->factors.data() + i * n * n, lu->pivots.data() + i * n, n, to + i * n * m, m,
                      transposed);
  });
  return record<T>(
      ops::solve, std::move(x), Inputs(a, b), Attributes(transposed), Saved(a, Output()),
      [lu, transposed](Variable<T> dx, Needs needs, Variable<T> a, Variable<T> x) -> Grads<T, 2> {
        Grads<T, 2> grads;
        grads[1] = lu_solution(a, lu, dx, !transposed);
        if (needs[0]) {
          grads[0] = -(transposed ? matrix_product(x, false, grads[1], true)
                                  : matrix_product(grads[1], false, x, true));
        }
        return grads;
      });
}

namespace {

template <class T>
std::shared_ptr<const detail::LuFactors<T>> invertible(const char* op, const Variable<T>& a) {
  std::shared_ptr<const detail::LuFactors<T>> lu = detail::lu_factors(a);
  const auto& pivots = lu->zero_pivots;
  const auto zero = std::find_if(pivots.begin(), pivots.end(), [](std::size_t place) { return place != 0; });
  if (zero != pivots.end()) {
    const auto number = static_cast<std::size_t>(zero - pivots.begin());
    detail::fail<ValueError>(op, ": ", detail::matrix_place(a.shape(), number), " is singular, pivot ", *zero,
                             " of ", a.shape(-1), " is 0");
  }
  return lu;
}

}  // namespace

template <class T>
Variable<T> solve(const Variable<T>& a, const Variable<T>& b, SolveOptions options) {
  const bool left = options.left;
  const std::size_t n = detail::matrix_order("solve", a.shape());
  const Shape of_vectors(a.shape().begin(), a.shape().end() - 1);
  if (b.dimension() == 1 || b.shape() == of_vectors) {
    const Variable<T> x = solve(left ? a : mT(a), unsqueeze(b, -1));
    return squeeze(x, -1);
  }
  detail::check_matrices("solve", b.shape(), "b");
  if (b.shape(left ? -2 : -1) != n) {
    detail::fail<ShapeError>("solve: b must have ", n, left ? " rows" : " columns", ", got a ", a.shape(),
                             " and b ", b.shape());
  }
  if (!left) return mT(solve(mT(a), mT(b)));
  const auto [matrices, right] = detail::in_common_batch("solve", a, b);
  return detail::lu_solution(matrices, invertible("solve", matrices), right, false);
}

template <class T>
Variable<T> inv(const Variable<T>& a) {
  const std::size_t n = detail::matrix_order("inv", a.shape());
  const auto lu = invertible("inv", a);
  const detail::ExactProducts exact;
  Variable<T> y = detail::empty<T>(a.shape());
  T* to = detail::data(y);
  std::fill_n(to, y.size(), T{0});
  detail::for_each_matrix(detail::matrix_count(a.shape()), n, [&](std::size_t i) {
    T* const one = to + i * n * n;
    for (std::size_t k = 0; k < n; ++k) one[k * n + k] = T{1};
    kernels::lu_solve(lu->factors.data() + i * n * n, lu->pivots.data() + i * n, n, one, n, false);
  });
  return record<T>(ops::inv, std::move(y), Inputs(a), Saved(Output()),
                   [](Variable<T> dy, Needs, Variable<T> y) -> Grads<T, 1> {
                     const Variable<T> left = detail::matrix_product(y, true, dy, false);
                     return {-detail::matrix_product(left, false, y, true)};
                   });
}

#define XGRAD_INSTANTIATE(T)                                                                               \
  template Variable<T> solve(const Variable<T>&, const Variable<T>&, SolveOptions);                        \
  template Variable<T> inv(const Variable<T>&);                                                            \
  template std::shared_ptr<const detail::LuFactors<T>> detail::lu_factors(const Variable<T>&);             \
  template Variable<T> detail::lu_solution(const Variable<T>&, const std::shared_ptr<const LuFactors<T>>&, \
                                           const Variable<T>&, bool);

XGRAD_INSTANTIATE(float)
XGRAD_INSTANTIATE(double)

}  // namespace xgrad
