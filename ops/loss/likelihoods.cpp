#include "likelihoods.hpp"

#include <algorithm>

#include "../index/masked_fill.hpp"
#include "../pointwise/arithmetic.hpp"
#include "../pointwise/elementwise.hpp"
#include "../pointwise/logarithms.hpp"
#include "../shape/shapes.hpp"
#include "detail/losses.hpp"

namespace xgrad {
namespace {

constexpr double ln_2_pi = 1.83787706640934548356;

/// var as it broadcasts to input.
template <class T>
Variable<T> spread(const Variable<T>& var, const Shape& input) {
  const std::size_t rank = input.size();
  const bool without_last = var.dimension() + 1 == rank && !same_shape(var.shape(), input) &&
                            std::equal(var.shape().begin(), var.shape().end(), input.begin());
  if (without_last) return unsqueeze(var, -1);
  const Shape shape = detail::broadcast_shape("gaussian_nll_loss", input, var.shape(), "input", "var");
  if (!same_shape(shape, input)) {
    detail::fail<ShapeError>("gaussian_nll_loss: var must broadcast to input, got input ", input, " and var ",
                             var.shape());
  }
  return var;
}

}  // namespace

template <class T>
Variable<T> gaussian_nll_loss(const Variable<T>& input, const std::type_identity_t<Variable<T>>& target,
                              const std::type_identity_t<Variable<T>>& var, GaussianNllOptions options) {
  detail::check_operands("gaussian_nll_loss", input, target);
  if (!(options.eps > 0))
    detail::fail<ValueError>("gaussian_nll_loss: eps must be positive, got ", options.eps);
  const Variable<T> variance = spread(var, input.shape());
  Array<T> lack = Array<T>::from_shape(variance.shape());  // what is added to reach eps
  for (std::size_t i = 0; i < lack.size(); ++i) {
    const T one = variance.value().data()[i];
    if (one < 0) detail::fail<ValueError>("gaussian_nll_loss: var must be at least 0, got ", one);
    lack.data()[i] = std::max(static_cast<T>(options.eps) - one, T{0});
  }
  const Variable<T> v = variance + Variable<T>(std::move(lack));
  const Variable<T> difference = input - target;
  Variable<T> losses = (log(v) + difference * (difference / v)) * T(0.5);  // the square may leave the range
  if (options.full) losses = losses + static_cast<T>(ln_2_pi / 2);
  return detail::reduced_losses(losses, options.reduction);
}

template <class T>
Variable<T> poisson_nll_loss(const Variable<T>& input, const std::type_identity_t<Variable<T>>& target,
                             PoissonNllOptions options) {
  detail::check_operands("poisson_nll_loss", input, target);
  Variable<T> losses = options.log_input
                           ? exp(input) - detail::weighted(target, input)
                           : input - detail::weighted(target, log(input + static_cast<T>(options.eps)));
  if (options.full) {
    const Mask small = target.value() <= T{1};
    const Variable<T> n = masked_fill(target, small, T{1});
    const Variable<T> factorial = (n + T(0.5)) * log(n) - n + static_cast<T>(ln_2_pi / 2);
    losses = losses + masked_fill(factorial, small, T{0});
  }
  return detail::reduced_losses(losses, options.reduction);
}

#define XGRAD_INSTANTIATE(T)                                                                         \
  template Variable<T> gaussian_nll_loss(const Variable<T>&, const Variable<T>&, const Variable<T>&, \
                                         GaussianNllOptions);                                        \
  template Variable<T> poisson_nll_loss(const Variable<T>&, const Variable<T>&, PoissonNllOptions);

XGRAD_INSTANTIATE(float)
XGRAD_INSTANTIATE(double)

}  // namespace xgrad
