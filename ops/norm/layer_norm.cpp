#include "layer_norm.hpp"

#include <algorithm>

#include "../../graph/fused.hpp"
#include "../../kernels/rows/layer_norm.hpp"
#include "../detail/kernel_grads.hpp"
#include "../pointwise/elementwise.hpp"
#include "../reduce/reductions.hpp"
#include "../shape/shapes.hpp"

namespace xgrad {
namespace {

template <class T>
Variable<T> layer_norm_composed(const Variable<T>& x, const Variable<T>& weight, const Variable<T>& bias,
                                std::size_t rows, std::size_t cols, double eps) {
  const Variable<T> table = reshape(x, {rows, cols});
  const Variable<T> centred = table - mean(table, 1, {.keepdim = true});
  const Variable<T> variance = mean(centred * centred, 1, {.keepdim = true});
  // 0 times the variance is nan where that overflows, as in the kernel.
  Variable<T> y = centred / (sqrt(variance + static_cast<T>(eps)) + variance * 0);
  if (weight.defined()) y = y * reshape(weight, cols);
  if (bias.defined()) y = y + reshape(bias, cols);
  return reshape(y, x.shape());
}

void check(const char* op, const Shape& x, const Dims& normalized_shape) {
  const std::size_t count = normalized_shape.size();
  if (count == 0 || count > x.size() ||
      !std::equal(normalized_shape.begin(), normalized_shape.end(),
                  x.end() - static_cast<std::ptrdiff_t>(count), [](std::ptrdiff_t want, std::size_t length) {
                    return want == static_cast<std::ptrdiff_t>(length);
                  })) {
    detail::fail<ShapeError>(op, ": the last axes of x must be normalized_shape ",
                             to_string(normalized_shape), ", got x ", x);
  }
}

template <class T>
const T* checked_data(const char* op, const char* name, const Variable<T>& parameter, const Shape& shape) {
  if (!parameter.defined()) return nullptr;
  if (parameter.shape() != shape) {
    detail::fail<ShapeError>(op, ": ", name, " must have normalized_shape ", shape, ", got ",
                             parameter.shape());
  }
  return detail::data(parameter);
}

/// What is normalized over: the last axes, as columns.
struct Table {
  std::size_t rows, cols;
};

/// y and what its gradient needs.
template <class T>
struct Normalized {
  Table table;
  Variable<T> y, statistics;  // mean and rstd of each row
};

/// The forward pass, of x + residual if that is not null.
template <class T>
Normalized<T> normalize(const char* op, const Variable<T>& x, const T* residual, const Dims& normalized_shape,
                        const Variable<T>& weight, const Variable<T>& bias, double eps) {
  check(op, x.shape(), normalized_shape);
  const Shape columns(normalized_shape.begin(), normalized_shape.end());
  const T* scale = checked_data(op, "weight", weight, columns);
  const T* shift = checked_data(op, "bias", bias, columns);
  const std::size_t cols = element_count(columns);
  const std::size_t rows = element_count(Shape(x.shape().begin(), x.shape().end() - columns.size()));
  Normalized<T> result{{rows, cols}, detail::empty<T>(x.shape()), detail::empty<T>(Shape{2, rows})};
  T* const mean = detail::data(result.statistics);
  kernels::layer_norm_rows<T>({rows, cols, detail::data(x), residual, scale, shift}, static_cast<T>(eps),
                              {mean, mean + rows}, detail::data(result.y));
  return result;
}

/// Computes the gradients that are not null; dx is that of the residual, too.
template <class T>
void fill(const kernels::LayerNormGrads<T>& grads, const Variable<T>& dy, const Variable<T>& x,
          const T* residual, const Variable<T>& weight, const Variable<T>& statistics, const Table& table) {
  const auto [rows, cols] = table;
  Variable<T> scratch = detail::empty<T>(Shape{kernels::layer_norm_grad_scratch(rows, cols)});
  const T* const mean = detail::data(statistics);
  const T* const scale = weight.defined() ? detail::data(weight) : nullptr;
  kernels::layer_norm_grad_rows<T>(detail::data(dy), {rows, cols, detail::data(x), residual, scale, nullptr},
                                   {mean, mean + rows}, grads, detail::data(scratch));
}

}  // namespace

// [layer_norm]
template <class T>
Variable<T> layer_norm(const Variable<T>& x, const Dims& normalized_shape, const Variable<T>& weight,
                       const Variable<T>& bias, double eps) {
  Normalized<T> result = normalize<T>("layer_norm", x, nullptr, normalized_shape, weight, bias, eps);
  return fused<T>(
      ops::layer_norm, std::move(result.y), Inputs(x, weight, Unread(bias)),
      Attributes(normalized_shape, eps), Saved(result.statistics),
      [table = result.table, eps](const Variable<T>& x, const Variable<T>& weight, const Variable<T>& bias) {
        return layer_norm_composed(x, weight, bias, table.rows, table.cols, eps);
      },
      [table = result.table](const Variable<T>& dy, Needs needs, const Variable<T>& x,
                             const Variable<T>& weight, const Variable<T>&,
                             const Variable<T>& statistics) -> Grads<T, 3> {
        auto grads = detail::empty_grads<T, 3>(needs);
        auto& [dx, dweight, dbias] = grads;
        fill<T>({detail::data_if_needed(dx), detail::data_if_needed(dweight), detail::data_if_needed(dbias)},
                dy, x, nullptr, weight, statistics, table);
        return grads;
      });
}
// [layer_norm]

template <class T>
Variable<T> add_layer_norm(const Variable<T>& x, const Variable<T>& residual, const Dims& normalized_shape,
                           const Variable<T>& weight, const Variable<T>& bias, double eps) {
  if (!same_shape(x.shape(), residual.shape())) {
    detail::fail<ShapeError>("add_layer_norm: x and residual must have the same shape, got ", x.shape(),
                             " and ", residual.shape());
  }
  Normalized<T> result =
      normalize<T>("add_layer_norm", x, detail::data(residual), normalized_shape, weight, bias, eps);
  return fused<T>(
      ops::add_layer_norm, std::move(result.y), Inputs(x, residual, weight, Unread(bias)),
      Attributes(normalized_shape, eps), Saved(result.statistics),
      [table = result.table, eps](const Variable<T>& x, const Variable<T>& residual,
                                  const Variable<T>& weight, const Variable<T>& bias) {
        return layer_norm_composed(x + residual, weight, bias, table.rows, table.cols, eps);
      },
      [table = result.table](const Variable<T>& dy, Needs needs, const Variable<T>& x,
                             const Variable<T>& residual, const Variable<T>& weight, const Variable<T>&,
                             const Variable<T>& statistics) -> Grads<T, 4> {
        Variable<T> dsum = detail::empty_grad<T>(needs, needs[0] ? 0 : 1);  // of x and of the residual
        Variable<T> dweight = detail::empty_grad<T>(needs, 2), dbias = detail::empty_grad<T>(needs, 3);
        fill<T>(
            {detail::data_if_needed(dsum), detail::data_if_needed(dweight), detail::data_if_needed(dbias)},
            dy, x, detail::data(residual), weight, statistics, table);
        return {needs[0] ? dsum : Variable<T>(), needs[1] ? dsum : Variable<T>(), dweight, dbias};
      });
}

#define XGRAD_INSTANTIATE(T)                                                                               \
  template Variable<T> layer_norm(const Variable<T>&, const Dims&, const Variable<T>&, const Variable<T>&, \
                                  double);                                                                 \
  template Variable<T> add_layer_norm(const Variable<T>&, const Variable<T>&, const Dims&,                 \
                                      const Variable<T>&, const Variable<T>&, double);

XGRAD_INSTANTIATE(float)
XGRAD_INSTANTIATE(double)

}  // namespace xgrad
