#include "solve_triangular.hpp"

#include "../../graph/record.hpp"
#include "../product/matmul.hpp"
#include "detail/matrices.hpp"
#include "detail/solutions.hpp"
#include "triangle.hpp"

namespace xgrad {

template <class T>
Variable<T> detail::triangular_solution(const Variable<T>& a, const Variable<T>& b,
                                        kernels::Triangular options) {
  const detail::ExactProducts exact;
  const std::size_t n = a.shape(-1), rows = b.shape(-2), cols = b.shape(-1);
  Variable<T> x = copy_of(b);
  const T* from = data(a);
  T* to = data(x);
  for_each_matrix(matrix_count(b.shape()), std::max(rows, cols), [&](std::size_t i) {
    kernels::solve_triangular(from + i * n * n, to + i * rows * cols, rows, cols, options);
  });
  return record<T>(ops::solve_triangular, std::move(x), Inputs(a, b),
                   Attributes(options.upper, options.left, options.unitriangular, options.transposed),
                   Saved(a, Output()),
                   [options](Variable<T> dx, Needs needs, Variable<T> a, Variable<T> x) -> Grads<T, 2> {
                     kernels::Triangular other = options;
                     other.transposed = !options.transposed;
                     Grads<T, 2> grads;
                     grads[1] = triangular_solution(a, dx, other);
                     if (needs[0]) {
                       const Variable<T>&db = grads[1], &first = options.transposed == options.left ? x : db,
                             &second = options.transposed == options.left ? db : x;
                       const Variable<T> full = -matrix_product(first, !options.left, second, options.left);
                       const int border = options.unitriangular ? 1 : 0;
                       grads[0] = options.upper ? triu(full, border) : tril(full, -border);
                     }
                     return grads;
                   });
}

template <class T>
Variable<T> solve_triangular(const Variable<T>& a, const Variable<T>& b, SolveTriangularOptions options) {
  const std::size_t n = detail::matrix_order("solve_triangular", a.shape());
  detail::check_matrices("solve_triangular", b.shape(), "b");
  if (b.shape(options.left ? -2 : -1) != n) {
    detail::fail<ShapeError>("solve_triangular: b must have ", n, options.left ? " rows" : " columns",
                             ", got a ", a.shape(), " and b ", b.shape());
  }
  const T* element = detail::data(a);
  for (std::size_t i = 0; i < row_count(a.shape()) && !options.unitriangular; ++i) {
    if (element[i * n + i % n] == T{0}) {
      detail::fail<ValueError>("solve_triangular: element (", i % n, ", ", i % n, ") of the diagonal of ",
                               detail::matrix_place(a.shape(), i / n), " is 0, it is singular");
    }
  }
  const auto [left, right] = detail::in_common_batch("solve_triangular", a, b);
  return detail::triangular_solution(
      left, right, {.upper = options.upper, .left = options.left, .unitriangular = options.unitriangular});
}

#define XGRAD_INSTANTIATE(T)                                                                             \
  template Variable<T> solve_triangular(const Variable<T>&, const Variable<T>&, SolveTriangularOptions); \
  template Variable<T> detail::triangular_solution(const Variable<T>&, const Variable<T>&,               \
                                                   kernels::Triangular);

XGRAD_INSTANTIATE(float)
XGRAD_INSTANTIATE(double)

}  // namespace xgrad
