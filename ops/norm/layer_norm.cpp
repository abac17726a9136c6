#include "layer_norm.hpp"

#include "../../graph/fused.hpp"
#include "../detail/kernel_grads.hpp"
#include "../pointwise/elementwise.hpp"
#include "../reduce/detail/deviations.hpp"
#include "../reduce/reductions.hpp"
#include "../shape/shapes.hpp"
#include "detail/normalize.hpp"

namespace xgrad {
namespace {

template <class T>
Variable<T> layer_norm_composed(const Variable<T>& x, const Variable<T>& weight, const Variable<T>& bias,
                                std::size_t rows, std::size_t cols, double eps) {
  const Variable<T> table = reshape(x, {rows, cols});
  Variable<T> centred = detail::deviations(table, 1);
  Variable<T> variance = mean(centred * centred, 1, {.keepdim = true}) + static_cast<T>(eps);
  if (const Variable<T> factors = detail::range_factors(table, variance); factors.defined()) {
    centred = detail::deviations(table * factors, 1);
    variance = mean(centred * centred, 1, {.keepdim = true}) + static_cast<T>(eps) * factors * factors;
  }
  Variable<T> y = centred / sqrt(variance);
  if (weight.defined()) y = y * reshape(weight, cols);
  if (bias.defined()) y = y + reshape(bias, cols);
  return reshape(y, x.shape());
}

}  // namespace

// [layer_norm]
template <class T>
Variable<T> layer_norm(const Variable<T>& x, const Dims& normalized_shape, const Variable<T>& weight,
                       const Variable<T>& bias, double eps) {
  detail::Normalized<T> result = detail::normalize<T>("layer_norm", detail::Centring::mean, x, nullptr,
                                                      normalized_shape, weight, bias, eps);
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
        detail::normalize_grad<T>(
            {detail::data_if_needed(dx), detail::data_if_needed(dweight), detail::data_if_needed(dbias)}, dy,
            x, nullptr, weight, statistics, table);
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
  detail::Normalized<T> result =
      detail::normalize<T>("add_layer_norm", detail::Centring::mean, x, detail::data(residual),
                           normalized_shape, weight, bias, eps);
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
        detail::normalize_grad<T>(
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
