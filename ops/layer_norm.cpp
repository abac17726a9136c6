#include <xgrad/ops/layer_norm.hpp>

#include <algorithm>

#include <xtensor/xbuilder.hpp>

#include <xgrad/graph/record.hpp>
#include <xgrad/ops/elementwise.hpp>
#include <xgrad/ops/kernels/layer_norm.hpp>
#include <xgrad/ops/reductions.hpp>
#include <xgrad/ops/shapes.hpp>

namespace xgrad {
namespace {

template <class T>
Variable<T> layer_norm_composed(const Variable<T>& x, const Variable<T>& weight, const Variable<T>& bias,
                                std::size_t rows, std::size_t cols, double eps) {
  const Variable<T> table = reshape(x, {rows, cols});
  const Variable<T> centred = table - mean(table, 1, true);
  const Variable<T> variance = mean(centred * centred, 1, true);
  Variable<T> y = centred / sqrt(variance + static_cast<T>(eps));
  if (weight.defined()) y = y * reshape(weight, cols);
  if (bias.defined()) y = y + reshape(bias, cols);
  return reshape(y, x.shape());
}

void check(const Shape& x, const Dims& normalized_shape) {
  const std::size_t count = normalized_shape.size();
  if (count == 0 || count > x.size() ||
      !std::equal(normalized_shape.begin(), normalized_shape.end(),
                  x.end() - static_cast<std::ptrdiff_t>(count), [](std::ptrdiff_t want, std::size_t length) {
                    return want == static_cast<std::ptrdiff_t>(length);
                  })) {
    detail::fail<ShapeError>("layer_norm: the last axes of x must be normalized_shape ",
                             to_string(normalized_shape), ", got x ", x);
  }
}

template <class T>
const T* checked_data(const char* name, const Variable<T>& parameter, const Shape& shape) {
  if (!parameter.defined()) return nullptr;
  if (parameter.shape() != shape) {
    detail::fail<ShapeError>("layer_norm: ", name, " must have normalized_shape ", shape, ", got ",
                             parameter.shape());
  }
  return detail::data(parameter);
}

}  // namespace

template <class T>
Variable<T> layer_norm(const Variable<T>& x, const Dims& normalized_shape, const Variable<T>& weight,
                       const Variable<T>& bias, double eps) {
  check(x.shape(), normalized_shape);
  const Shape shape(normalized_shape.begin(), normalized_shape.end());
  const T* scale = checked_data("weight", weight, shape);
  const T* shift = checked_data("bias", bias, shape);
  const std::size_t cols = element_count(shape);
  const std::size_t rows = element_count(Shape(x.shape().begin(), x.shape().end() - shape.size()));

  Variable<T> y = detail::empty<T>(x.shape());
  Variable<T> statistics = detail::empty<T>(Shape{2, rows});  // mean and rstd of each row
  kernels::layer_norm_rows(detail::data(x), scale, shift, static_cast<T>(eps), detail::data(y),
                           detail::data(statistics), detail::data(statistics) + rows, rows, cols);
  return record<T>(
      "layer_norm", std::move(y), on(x, weight, bias), save(x, weight, statistics),
      [rows, cols, eps, shape, biased = bias.defined()](Variable<T> dy, Needs needs, Variable<T> x,
                                                        Variable<T> weight,
                                                        Variable<T> statistics) -> Grads<T, 3> {
        if (grad_enabled()) {
          // no gradient depends on the bias's value, so it was not saved
          const Variable<T> bias = biased ? Variable<T>(xt::zeros<T>(shape), true) : Variable<T>();
          return replay<T, 3>(dy, needs, {x, weight, bias},
                              [=](const Variable<T>& x, const Variable<T>& weight, const Variable<T>& bias) {
                                return layer_norm_composed(x, weight, bias, rows, cols, eps);
                              });
        }
        Grads<T, 3> grads;
        if (needs[0]) grads[0] = detail::empty<T>(x.shape());
        if (needs[1]) grads[1] = detail::empty<T>(shape);
        if (needs[2]) grads[2] = detail::empty<T>(shape);
        const auto target = [&](std::size_t i) { return needs[i] ? detail::data(grads[i]) : nullptr; };
        const T* mean = detail::data(statistics);
        kernels::layer_norm_grad_rows(detail::data(dy), detail::data(x), mean, mean + rows,
                                      weight.defined() ? detail::data(weight) : nullptr, target(0), target(1),
                                      target(2), rows, cols);
        return grads;
      });
}

template Variable<float> layer_norm(const Variable<float>&, const Dims&, const Variable<float>&,
                                    const Variable<float>&, double);
template Variable<double> layer_norm(const Variable<double>&, const Dims&, const Variable<double>&,
                                     const Variable<double>&, double);

}  // namespace xgrad
