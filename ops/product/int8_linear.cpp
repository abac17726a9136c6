#include "int8_linear.hpp"

#include <algorithm>
#include <cmath>

#include "../../graph/record.hpp"
#include "../../kernels/low_precision/int8.hpp"

namespace xgrad {
namespace {

void check_weight(const Shape& shape) {
  if (shape.size() != 2 || shape[1] > kernels::most_int8_cols)
    detail::fail<ShapeError>("Int8Weight: weight must be (out, in) with in of at most ",
                             kernels::most_int8_cols, ", got ", shape);
}

}  // namespace

Int8Weight::Int8Weight(const Array<float>& weight) {
  check_weight(weight.shape());
  const std::size_t out = weight.shape(0), in = weight.shape(1);
  const kernels::Int8Rows rows({weight.data(), out, in}, kernels::Int8Range::symmetric);
  const std::span<const float> scales(rows.scales(), out);
  const auto wrong = std::find_if(scales.begin(), scales.end(), [](float s) { return std::isnan(s); });
  if (wrong != scales.end())
    detail::fail<ValueError>("Int8Weight: all numbers must be finite, got another in row ",
                             wrong - scales.begin());
  matrix_ = std::make_shared<const kernels::Int8Matrix>(rows.values(), scales, in);
}

Int8Weight::Int8Weight(std::span<const std::int8_t> values, std::span<const float> scales,
                       const Shape& shape) {
  check_weight(shape);
  if (scales.size() != shape[0] || values.size() != shape[0] * shape[1])
    detail::fail<ShapeError>("Int8Weight: values and scales must fit the shape ", shape, ", got ",
                             values.size(), " and ", scales.size());
  matrix_ = std::make_shared<const kernels::Int8Matrix>(values, scales, shape[1]);
}

Shape Int8Weight::shape() const { return {matrix_->rows(), matrix_->cols()}; }
std::vector<std::int8_t> Int8Weight::values() const { return matrix_->values(); }
std::vector<float> Int8Weight::scales() const { return matrix_->scales(); }

void detail::refuse_int8_gradient(const char* op, bool will_record) {
  if (will_record)
    fail<ValueError>(op, ": 8-bit weights have no gradient: freeze all parameters in front of them, or ",
                     "compute with NoGrad");
}

Variable<float> int8_linear(const Variable<float>& x, const Int8Weight& weight, const Variable<float>& bias) {
  const char* const op = ops::int8_linear.name;
  const std::size_t out = weight.matrix().rows(), in = weight.matrix().cols();
  if (x.dimension() == 0 || x.shape().back() != in)
    detail::fail<ShapeError>(op, ": the last axis of x must be weight's last, got x ", x.shape(),
                             " and weight ", weight.shape());
  if (bias.defined() && bias.shape() != Shape{out})
    detail::fail<ShapeError>(op, ": bias must have shape (", out, ") to fit weight ", weight.shape(),
                             ", got ", bias.shape());
  detail::refuse_int8_gradient(op, will_record(x, bias));
  Shape shape = x.shape();
  shape.back() = out;
  Variable<float> y = detail::empty<float>(shape, op);
  const kernels::Int8Rows rows({detail::data(x), row_count(shape), in}, kernels::Int8Range::all);
  kernels::int8_linear_rows(rows, weight.matrix(), bias.defined() ? detail::data(bias) : nullptr,
                            detail::data(y));
  return record<float>(ops::int8_linear, std::move(y), Inputs(x, bias), Saved(),
                       [](Variable<float>, Needs) { return Grads<float, 2>(); });
}

}  // namespace xgrad
