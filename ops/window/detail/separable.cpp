#include "separable.hpp"

#include <utility>

namespace xgrad {
namespace ops {

constexpr Op axis_products_grad("axis_products_grad", {"dy"});

}  // namespace ops

namespace detail {

template <class T>
Variable<T> axis_products(const char* op, const Variable<T>& x, const AxisMatrices<T>& matrices) {
  Shape shape = x.shape();
  Variable<T> y = x;
  std::size_t axis = shape.size() - matrices->size();
  for (const kernels::SparseMatrix<T>& matrix : *matrices) {
    std::size_t outer = 1, inner = 1;
    for (std::size_t i = 0; i < axis; ++i) outer *= shape[i];
    for (std::size_t i = axis + 1; i < shape.size(); ++i) inner *= shape[i];
    shape[axis++] = matrix.rows();
    Variable<T> next = empty<T>(shape, op);
    kernels::weighted_sums<T>(matrix, data(y), outer, inner, data(next));
    y = std::move(next);
  }
  return y;
}

template <class T>
Variable<T> axis_products_grad(const Variable<T>& dy, const AxisMatrices<T>& matrices) {
  auto transposed = std::make_shared<std::vector<kernels::SparseMatrix<T>>>();
  for (const kernels::SparseMatrix<T>& matrix : *matrices) transposed->push_back(matrix.transpose());
  return separable(ops::axis_products_grad, dy, AxisMatrices<T>(std::move(transposed)), Attributes());
}

#define XGRAD_INSTANTIATE(T)                                                                   \
  template Variable<T> axis_products(const char*, const Variable<T>&, const AxisMatrices<T>&); \
  template Variable<T> axis_products_grad(const Variable<T>&, const AxisMatrices<T>&);

XGRAD_INSTANTIATE(float)
XGRAD_INSTANTIATE(double)

}  // namespace detail
}  // namespace xgrad
