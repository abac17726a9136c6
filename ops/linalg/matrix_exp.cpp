#include "matrix_exp.hpp"

#include "../../graph/record.hpp"
#include "../../kernels/lapack/matrix_exp.hpp"
#include "../index/indexing.hpp"
#include "../shape/shapes.hpp"
#include "detail/matrices.hpp"

namespace xgrad {

template <class T>
Variable<T> matrix_exp(const Variable<T>& a) {
  const std::size_t n = detail::matrix_order("matrix_exp", a.shape());
  Variable<T> y = detail::empty<T>(a.shape());
  const T* from = detail::data(a);
  T* to = detail::data(y);
  detail::for_each_matrix(detail::matrix_count(a.shape()), n,
                          [&](std::size_t i) { kernels::matrix_exp(from + i * n * n, to + i * n * n, n); });
  return record<T>(
      ops::matrix_exp, std::move(y), Inputs(a), Saved(a),
      [n](Variable<T> dy, Needs, Variable<T> a) -> Grads<T, 1> {
        const Variable<T> transposed = mT(a), zeros(Array<T>(a.shape(), T{0}));
        const Variable<T> blocks = cat({cat({transposed, dy}, -1), cat({zeros, transposed}, -1)}, -2);
        const auto order = static_cast<std::ptrdiff_t>(n);
        return {narrow(narrow(matrix_exp(blocks), -2, 0, order), -1, order, order)};
      });
}

#define XGRAD_INSTANTIATE(T) template Variable<T> matrix_exp(const Variable<T>&);

XGRAD_INSTANTIATE(float)
XGRAD_INSTANTIATE(double)

}  // namespace xgrad
