#include "linear.hpp"

#include "../../graph/fused.hpp"
#include "../../kernels/gemm/linear.hpp"
#include "../../kernels/rows/reduce.hpp"
#include "../detail/kernel_grads.hpp"
#include "../pointwise/broadcast.hpp"
#include "../pointwise/elementwise.hpp"
#include "detail/reduced_rows.hpp"
#include "matmul.hpp"

namespace xgrad {
namespace {

template <class T>
void check_input(const char* op, const Variable<T>& x, const Shape& weight) {
  if (x.dimension() == 0 || x.shape().back() != weight.back()) {
    detail::fail<ShapeError>(op, ": the last axis of x must be weight's last, got x ", x.shape(),
                             " and weight ", weight);
  }
}

/// y's shape (..., out), for a weight (out, in).
template <class T>
Shape checked_shape(const char* op, const Variable<T>& x, const Shape& weight, const Variable<T>& bias) {
  check_input(op, x, weight);
  const std::size_t out = weight[0];
  if (bias.defined() && !(bias.dimension() == 1 && bias.size() == out)) {
    detail::fail<ShapeError>(op, ": bias must have shape (", out, ") to fit weight ", weight, ", got ",
                             bias.shape());
  }
  Shape shape = x.shape();
  shape.back() = out;
  return shape;
}

/// The gradients of x, weight and bias, made of ops that can be differentiated in turn.
template <class T>
Grads<T, 3> linear_grads(const Variable<T>& dy, Needs needs, const Variable<T>& x,
                         const Variable<T>& weight) {
  Grads<T, 3> grads;
  if (needs[0]) grads[0] = detail::matrix_product(dy, false, weight, false, detail::LeadingAxes::rows);
  if (needs[1]) grads[1] = detail::matrix_product(dy, true, x, false, detail::LeadingAxes::rows);
  if (needs[2]) grads[2] = detail::summed(dy, needs.shape(2));
  return grads;
}

/// linear() for numbers of fewer bits.
template <class T>
Variable<T> reduced_linear(const Variable<T>& x, const Weight<T>& weight, const Variable<T>& bias) {
  const detail::ReducedRows& numbers = *detail::WeightAccess<T>::reduced(weight);
  const bool is_int8 = numbers.int8() != nullptr;
  const char* const op = is_int8 ? ops::int8_linear.name : ops::bfloat16_linear.name;
  const Shape shape = checked_shape(op, x, numbers.shape(), bias);
  if (is_int8) detail::refuse_gradient_of_integers(op, will_record(x, bias));
  const std::size_t rows = row_count(shape), out = numbers.shape()[0], in = numbers.shape()[1];
  Variable<T> y = detail::empty<T>(shape, op);
  numbers.multiply<T>({detail::data(x), rows, in}, bias.defined() ? detail::data(bias) : nullptr,
                      detail::data(y));
  if (is_int8)
    return record<T>(ops::int8_linear, std::move(y), Inputs(x, bias), Saved(),
                     [](Variable<T>, Needs) { return Grads<T, 2>(); });
  return fused<T>(
      ops::bfloat16_linear, std::move(y), Inputs(Unread(x), Unread(bias)), Attributes(), Saved(),
      [weight](const Variable<T>& x, const Variable<T>& bias) {
        return linear(x, Variable<T>(weight.values()), bias);
      },
      [weight, rows, out](const Variable<T>& dy, Needs needs, const Variable<T>&,
                          const Variable<T>&) -> Grads<T, 2> {
        auto grads = detail::empty_grads<T, 2>(needs);
        auto& [dx, dbias] = grads;
        if (dx.defined())
          detail::WeightAccess<T>::reduced(weight)->template multiply_gradient<T>(
              {detail::data(dy), rows, out}, detail::data(dx));
        if (dbias.defined()) kernels::sum_middle<T>(detail::data(dy), 1, rows, out, detail::data(dbias));
        return grads;
      });
}

}  // namespace

template <class T>
Variable<T> linear(const Variable<T>& x, const Variable<T>& weight, const Variable<T>& bias) {
  const std::size_t rank = weight.dimension();
  if (rank != 1 && rank != 2) {
    detail::fail<ShapeError>("linear: weight must have the axes (out, in) or (in), got ", weight.shape());
  }
  if (rank == 1) {
    check_input("linear", x, weight.shape());
    if (bias.defined())
      detail::fail<ShapeError>("linear: a weight (in) takes no bias, got bias ", bias.shape());
    return matmul(x, weight);
  }
  const Shape shape = checked_shape("linear", x, weight.shape(), bias);
  Variable<T> y = detail::empty<T>(shape, "linear");
  const std::size_t out = weight.shape()[0], in = weight.shape()[1];
  kernels::linear_rows<T>({detail::data(x), row_count(shape), in}, {detail::data(weight), out, in},
                          bias.defined() ? detail::data(bias) : nullptr, detail::data(y));
  return record<T>(ops::linear, std::move(y), Inputs(x, weight, bias),
                   Saved(Recomputed(if_requires_grad(weight, x)), if_requires_grad(x, weight)),
                   [](Variable<T> dy, Needs needs, Variable<T> x, Variable<T> weight) {
                     return linear_grads(dy, needs, x, weight);
                   });
}

template <class T>
Variable<T> linear(const Variable<T>& x, const Weight<T>& weight, const Variable<T>& bias) {
  if (!weight.is_trainable()) [[unlikely]]
    return reduced_linear(x, weight, bias);
  return linear(x, detail::WeightAccess<T>::variable(weight), bias);
}

template <class T>
Variable<T> linear_relu(const Variable<T>& x, const Weight<T>& weight, const Variable<T>& bias) {
  if (!weight.is_trainable()) [[unlikely]]
    return relu(linear(x, weight, bias));
  return linear_relu(x, detail::WeightAccess<T>::variable(weight), bias);
}

template <class T>
Variable<T> linear_relu(const Variable<T>& x, const Variable<T>& weight, const Variable<T>& bias) {
  if (weight.dimension() != 2) {
    detail::fail<ShapeError>("linear_relu: weight must have the axes (out, in), got ", weight.shape());
  }
  const Shape shape = checked_shape("linear_relu", x, weight.shape(), bias);
  if (!bias.defined()) return relu(linear(x, weight));
  Variable<T> y = detail::empty<T>(shape, "linear_relu");
  const std::size_t out = weight.shape()[0], in = weight.shape()[1];
  kernels::linear_relu_rows<T>({detail::data(x), row_count(shape), in}, {detail::data(weight), out, in},
                               detail::data(bias), detail::data(y));
  return record<T>(ops::linear_relu, std::move(y), Inputs(x, weight, bias),
                   Saved(if_requires_grad(weight, x), if_requires_grad(x, weight), Output()),
                   [](Variable<T> dy, Needs needs, Variable<T> x, Variable<T> weight, Variable<T> y) {
                     return linear_grads(detail::relu_grad(dy, y), needs, x, weight);
                   });
}

#define XGRAD_INSTANTIATE(T)                                                                    \
  template Variable<T> linear(const Variable<T>&, const Variable<T>&, const Variable<T>&);      \
  template Variable<T> linear(const Variable<T>&, const Weight<T>&, const Variable<T>&);        \
  template Variable<T> linear_relu(const Variable<T>&, const Variable<T>&, const Variable<T>&); \
  template Variable<T> linear_relu(const Variable<T>&, const Weight<T>&, const Variable<T>&);

XGRAD_INSTANTIATE(float)
XGRAD_INSTANTIATE(double)

}  // namespace xgrad
