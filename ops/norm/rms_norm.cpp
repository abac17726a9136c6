#include "rms_norm.hpp"

#include <limits>

#include "../../graph/fused.hpp"
#include "../detail/kernel_grads.hpp"
#include "../pointwise/elementwise.hpp"
#include "../reduce/reductions.hpp"
#include "../shape/shapes.hpp"
#include "detail/normalize.hpp"

namespace xgrad {
namespace {

template <class T>
Variable<T> rms_norm_composed(const Variable<T>& x, const Variable<T>& weight, const detail::NormTable& table,
                              double eps, double offset) {
  Variable<T> rows = reshape(x, {table.rows, table.cols});
  Variable<T> squares = mean(square(rows), 1, {.keepdim = true}) + static_cast<T>(eps);
  if (const Variable<T> factors = detail::range_factors(rows, squares); factors.defined()) {
    rows = rows * factors;
    squares = mean(square(rows), 1, {.keepdim = true}) + static_cast<T>(eps) * factors * factors;
  }
  // 0 times the mean square is nan where that is infinite, as in the kernel.
  Variable<T> y = rows * (rsqrt(squares) + squares * 0);
  if (weight.defined()) y = y * (reshape(weight, table.cols) + static_cast<T>(offset));
  return reshape(y, x.shape());
}

/// The weight with its offset, without a graph.
template <class T>
Variable<T> scale_of(const Variable<T>& weight, double offset) {
  if (!weight.defined() || offset == 0) return weight;
  return Variable<T>(weight.value() + static_cast<T>(offset));
}

}  // namespace

template <class T>
Variable<T> rms_norm(const Variable<T>& x, const Dims& normalized_shape, const Variable<T>& weight,
                     RMSNormOptions options) {
  const double eps = options.eps.value_or(std::numeric_limits<T>::epsilon()), offset = options.offset;
  detail::Normalized<T> result = detail::normalize<T>(ops::rms_norm.name, detail::Centring::none, x, nullptr,
                                                      normalized_shape, scale_of(weight, offset), {}, eps);
  return fused<T>(
      ops::rms_norm, std::move(result.y), Inputs(x, weight), Attributes(normalized_shape, eps, offset),
      Saved(result.statistics),
      [table = result.table, eps, offset](const Variable<T>& x, const Variable<T>& weight) {
        return rms_norm_composed(x, weight, table, eps, offset);
      },
      [table = result.table, offset](const Variable<T>& dy, Needs needs, const Variable<T>& x,
                                     const Variable<T>& weight,
                                     const Variable<T>& statistics) -> Grads<T, 2> {
        auto grads = detail::empty_grads<T, 2>(needs);
        auto& [dx, dweight] = grads;
        detail::normalize_grad<T>({detail::data_if_needed(dx), detail::data_if_needed(dweight), nullptr}, dy,
                                  x, nullptr, scale_of(weight, offset), statistics, table);
        return grads;
      });
}

#define XGRAD_INSTANTIATE(T) \
  template Variable<T> rms_norm(const Variable<T>&, const Dims&, const Variable<T>&, RMSNormOptions);

XGRAD_INSTANTIATE(float)
XGRAD_INSTANTIATE(double)

}  // namespace xgrad
