#include <xgrad/ops/linear.hpp>

#include <xgrad/graph/record.hpp>
#include <xgrad/ops/arithmetic.hpp>
#include <xgrad/ops/elementwise.hpp>
#include <xgrad/ops/kernels/elementwise.hpp>
#include <xgrad/ops/kernels/linear.hpp>
#include <xgrad/ops/matmul.hpp>

namespace xgrad {
namespace {

template <class T>
void check_input(const char* op, const Variable<T>& x, const Variable<T>& weight) {
  if (x.dimension() == 0 || x.shape().back() != weight.shape().back()) {
    detail::fail<ShapeError>(op, ": the last axis of x must be weight's last, got x ", x.shape(),
                             " and weight ", weight.shape());
  }
}

/// y's shape (..., out), for a weight with two axes.
template <class T>
Shape checked_shape(const char* op, const Variable<T>& x, const Variable<T>& weight,
                    const Variable<T>& bias) {
  check_input(op, x, weight);
  const std::size_t out = weight.shape()[0];
  if (bias.defined() && !(bias.dimension() == 1 && bias.size() == out)) {
    detail::fail<ShapeError>(op, ": bias must have shape (", out, ") to fit weight ", weight.shape(),
                             ", got ", bias.shape());
  }
  Shape shape = x.shape();
  shape.back() = out;
  return shape;
}

}  // namespace

template <class T>
Variable<T> linear(const Variable<T>& x, const Variable<T>& weight, const Variable<T>& bias) {
  const std::size_t rank = weight.dimension();
  if (rank != 1 && rank != 2) {
    detail::fail<ShapeError>("linear: weight must have the axes (out, in) or (in), got ", weight.shape());
  }
  if (rank == 1) {
    check_input("linear", x, weight);
    if (bias.defined())
      detail::fail<ShapeError>("linear: a weight (in) takes no bias, got bias ", bias.shape());
    return matmul(x, weight);
  }
  const Shape shape = checked_shape("linear", x, weight, bias);
  if (!bias.defined()) return detail::rows_matmul(x, weight, true, "linear");
  Variable<T> y = detail::empty<T>(shape, "linear");
  kernels::linear_rows(detail::data(x), detail::data(weight), detail::data(bias), detail::data(y),
                       row_count(shape), weight.shape()[1], shape.back());
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

template <class T>
Variable<T> linear_relu(const Variable<T>& x, const Variable<T>& weight, const Variable<T>& bias) {
  if (weight.dimension() != 2) {
    detail::fail<ShapeError>("linear_relu: weight must have the axes (out, in), got ", weight.shape());
  }
  const Shape shape = checked_shape("linear_relu", x, weight, bias);
  if (!bias.defined()) return relu(linear(x, weight));
  const std::size_t rows = row_count(shape), in = weight.shape()[1], out = shape.back();
  Variable<T> y = detail::empty<T>(shape, "linear_relu");
  kernels::linear_relu_rows(detail::data(x), detail::data(weight), detail::data(bias), detail::data(y), rows,
                            in, out);
  return record<T>(
      "linear_relu", std::move(y), on(x, weight, bias), save(x, weight, bias, output),
      [rows, in, out](Variable<T> dy, Needs needs, Variable<T> x, Variable<T> weight, Variable<T> bias,
                      Variable<T> y) -> Grads<T, 3> {
        if (grad_enabled()) {
          return replay<T, 3>(dy, needs, {x, weight, bias},
                              [](const Variable<T>& x, const Variable<T>& weight, const Variable<T>& bias) {
                                return relu(linear(x, weight, bias));
                              });
        }
        Variable<T> g = detail::empty<T>(y.shape());
        kernels::relu_grad(detail::data(std::as_const(dy)), detail::data(std::as_const(y)), detail::data(g),
                           g.size());
        Grads<T, 3> grads;
        for (std::size_t i = 0; i < 3; ++i) {
          if (needs[i]) grads[i] = detail::empty<T>(needs.shape(i));
        }
        const auto target = [&](std::size_t i) { return needs[i] ? detail::data(grads[i]) : nullptr; };
        kernels::linear_grad_rows(detail::data(std::as_const(g)), detail::data(std::as_const(x)),
                                  detail::data(std::as_const(weight)), target(0), /*adds_dx=*/false,
                                  target(1), target(2), rows, in, out);
        return grads;
      });
}

#define XGRAD_INSTANTIATE(T)                                                               \
  template Variable<T> linear(const Variable<T>&, const Variable<T>&, const Variable<T>&); \
  template Variable<T> linear_relu(const Variable<T>&, const Variable<T>&, const Variable<T>&);

XGRAD_INSTANTIATE(float)
XGRAD_INSTANTIATE(double)

}  // namespace xgrad
