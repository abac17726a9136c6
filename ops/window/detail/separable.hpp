#pragma once

#include <memory>
#include <utility>
#include <vector>

#include "../../../graph/record.hpp"
#include "../../../kernels/window/weighted_sums.hpp"

// Ops that are linear and separate along the last axes: each is multiplied by a sparse matrix.
namespace xgrad::detail {

/// One matrix for each of the last axes.
template <class T>
using AxisMatrices = std::shared_ptr<const std::vector<kernels::SparseMatrix<T>>>;

/// The matrix of columns, and before it that of rows, which a line, with one axis, does not have.
template <class T>
AxisMatrices<T> axis_matrices(std::size_t axes, kernels::SparseMatrix<T> of_rows,
                              kernels::SparseMatrix<T> of_cols) {
  auto matrices = std::make_shared<std::vector<kernels::SparseMatrix<T>>>();
  if (axes == 2) matrices->push_back(std::move(of_rows));
  matrices->push_back(std::move(of_cols));
  return matrices;
}

/// The products of x with the matrices, one axis after the other. `op` is for errors.
template <class T>
Variable<T> axis_products(const char* op, const Variable<T>& x, const AxisMatrices<T>& matrices);

/// The gradient: the products of dy with the transposed matrices, which can be differentiated in turn.
template <class T>
Variable<T> axis_products_grad(const Variable<T>& dy, const AxisMatrices<T>& matrices);

/// axis_products, recorded as `op`.
template <class T, class... A>
Variable<T> separable(StaticOp<1, sizeof...(A)> op, const Variable<T>& x, const AxisMatrices<T>& matrices,
                      const Attributes<A...>& attributes) {
  return record<T>(
      op, axis_products(op.info().name, x, matrices), Inputs(x), attributes, Saved(),
      [matrices](Variable<T> dy, Needs) -> Grads<T, 1> { return {axis_products_grad(dy, matrices)}; });
}

}  // namespace xgrad::detail
