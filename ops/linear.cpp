#include <xgrad/ops/linear.hpp>

#include <algorithm>

#include <xgrad/graph/record.hpp>
#include <xgrad/ops/arithmetic.hpp>
#include <xgrad/ops/kernels/gemm.hpp>
#include <xgrad/ops/matmul.hpp>

namespace xgrad {

template <class T>
Variable<T> linear(const Variable<T>& x, const Variable<T>& weight, const Variable<T>& bias) {
  const std::size_t rank = weight.dimension();
  if (rank != 1 && rank != 2) {
    detail::fail<ShapeError>("linear: weight must have the axes (out, in) or (in), got ", weight.shape());
  }
  const std::size_t out = weight.shape()[0], in = weight.shape().back();
  if (x.dimension() == 0 || x.shape().back() != in) {
    detail::fail<ShapeError>("linear: the last axis of x must be weight's last, got x ", x.shape(),
                             " and weight ", weight.shape());
  }
  if (rank == 1 && bias.defined())
    detail::fail<ShapeError>("linear: a weight (in) takes no bias, got bias ", bias.shape());
  if (rank == 1) return matmul(x, weight);
  if (!bias.defined()) return detail::rows_matmul(x, weight, true, "linear");
  if (bias.shape() != Shape{out}) {
    detail::fail<ShapeError>("linear: bias must have shape (", out, ") to fit weight ", weight.shape(),
                             ", got ", bias.shape());
  }

  Shape shape = x.shape();
  shape.back() = out;
  const std::size_t rows = row_count(x.shape());
  Variable<T> y = detail::empty<T>(shape, "linear");
  for (T *row = detail::data(y), *end = row + y.size(); row != end; row += out)
    std::copy_n(detail::data(bias), out, row);
  kernels::gemm<T>(false, true, rows, out, in, 1, detail::data(x), in, detail::data(weight), in, 1,
                   detail::data(y), out);
  return record<T>("linear", std::move(y), on(x, weight, bias),
                   save(saved_for(weight, x), saved_for(x, weight)),
                   [](Variable<T> dy, Needs needs, Variable<T> x, Variable<T> weight) -> Grads<T, 3> {
                     Grads<T, 3> grads;
                     if (needs[0]) grads[0] = detail::rows_matmul(dy, weight, false);
                     if (needs[1]) grads[1] = detail::outer_sum(dy, x);
                     if (needs[2]) grads[2] = sum_to(dy, needs.shape(2));
                     return grads;
                   });
}

template Variable<float> linear(const Variable<float>&, const Variable<float>&, const Variable<float>&);
template Variable<double> linear(const Variable<double>&, const Variable<double>&, const Variable<double>&);

}  // namespace xgrad
