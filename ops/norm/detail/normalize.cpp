#include "normalize.hpp"

#include <algorithm>
#include <cmath>

#include "../../../base/error.hpp"

namespace xgrad::detail {
namespace {

void check_last_axes(const char* op, const Shape& x, const Dims& normalized_shape) {
  const std::size_t count = normalized_shape.size();
  if (count == 0 || count > x.size() ||
      !std::equal(normalized_shape.begin(), normalized_shape.end(),
                  x.end() - static_cast<std::ptrdiff_t>(count), [](std::ptrdiff_t want, std::size_t length) {
                    return want == static_cast<std::ptrdiff_t>(length);
                  })) {
    fail<ShapeError>(op, ": the last axes of x must be normalized_shape ", to_string(normalized_shape),
                     ", got x ", x);
  }
}

template <class T>
const T* checked_data(const char* op, const char* name, const Variable<T>& parameter, const Shape& shape) {
  if (!parameter.defined()) return nullptr;
  if (parameter.shape() != shape)
    fail<ShapeError>(op, ": ", name, " must have normalized_shape ", shape, ", got ", parameter.shape());
  return data(parameter);
}

/// The rows of the statistics, which T may be const in.
template <class T>
kernels::LayerNormStatistics<T> statistics_in(T* rows, std::size_t kinds, std::size_t count) {
  return kinds == 2 ? kernels::LayerNormStatistics<T>{rows, rows + count}
                    : kernels::LayerNormStatistics<T>{nullptr, rows};
}

}  // namespace

template <class T>
Normalized<T> normalize(const char* op, Centring centring, const Variable<T>& x, const T* residual,
                        const Dims& normalized_shape, const Variable<T>& weight, const Variable<T>& bias,
                        double eps) {
  check_last_axes(op, x.shape(), normalized_shape);
  if (!(eps >= 0)) fail<ValueError>(op, ": eps must be at least 0, got ", eps);
  const Shape columns(normalized_shape.begin(), normalized_shape.end());
  const T* scale = checked_data(op, "weight", weight, columns);
  const T* shift = checked_data(op, "bias", bias, columns);
  const std::size_t cols = element_count(columns);
  const std::size_t rows = element_count(Shape(x.shape().begin(), x.shape().end() - columns.size()));
  const std::size_t kinds = centring == Centring::mean ? 2 : 1;
  Normalized<T> result{{rows, cols}, empty<T>(x.shape()), empty<T>(Shape{kinds, rows})};
  kernels::layer_norm_rows<T>({rows, cols, data(x), residual, scale, shift}, static_cast<T>(eps),
                              statistics_in<T>(data(result.statistics), kinds, rows), data(result.y));
  return result;
}

template <class T>
void normalize_grad(const kernels::LayerNormGrads<T>& grads, const Variable<T>& dy, const Variable<T>& x,
                    const T* residual, const Variable<T>& weight, const Variable<T>& statistics,
                    const NormTable& table) {
  const auto [rows, cols] = table;
  Variable<T> scratch = empty<T>(Shape{kernels::layer_norm_grad_scratch(rows, cols)});
  const T* const scale = weight.defined() ? data(weight) : nullptr;
  kernels::layer_norm_grad_rows<T>(data(dy), {rows, cols, data(x), residual, scale, nullptr},
                                   statistics_in<const T>(data(statistics), statistics.shape(0), rows), grads,
                                   data(scratch));
}

template <class T>
Variable<T> range_factors(const Variable<T>& rows, const Variable<T>& squares) {
  const std::size_t cols = rows.shape(1);
  Variable<T> factors;
  for (std::size_t r = 0; r < squares.size(); ++r) {
    if (data(squares)[r] > 0 && std::isfinite(data(squares)[r])) continue;
    T largest = 0;
    for (const T *x = data(rows) + r * cols, *end = x + cols; x != end; ++x)
      largest = std::max(largest, std::abs(*x));
    if (!(largest > 0) || !std::isfinite(largest)) continue;
    if (!factors.defined()) factors = Variable<T>(Array<T>(xt::ones<T>(squares.shape())));
    data(factors)[r] = std::ldexp(T{1}, -std::ilogb(largest));
  }
  return factors;
}

#define XGRAD_INSTANTIATE(T)                                                                              \
  template Normalized<T> normalize(const char*, Centring, const Variable<T>&, const T*, const Dims&,      \
                                   const Variable<T>&, const Variable<T>&, double);                       \
  template void normalize_grad(const kernels::LayerNormGrads<T>&, const Variable<T>&, const Variable<T>&, \
                               const T*, const Variable<T>&, const Variable<T>&, const NormTable&);       \
  template Variable<T> range_factors(const Variable<T>&, const Variable<T>&);

XGRAD_INSTANTIATE(float)
XGRAD_INSTANTIATE(double)

}  // namespace xgrad::detail
