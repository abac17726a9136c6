#include "dropout.hpp"

#include <utility>

#include "../../base/random.hpp"
#include "../../graph/record.hpp"
#include "../../kernels/pointwise/binary.hpp"
#include "arithmetic.hpp"

namespace xgrad {

template <class T>
Variable<T> dropout(const Variable<T>& x, double p, DropoutOptions options) {
  if (!(p >= 0 && p <= 1)) detail::fail<ValueError>("dropout: p must be in [0, 1], got ", p);
  const Shape& shape = x.shape();
  if (!options.training || p == 0) {
    return detail::same_elements(ops::dropout, x.detach(), x, Attributes(p, false));
  }
  // With p = 1 nothing is drawn.
  Variable<T> mask(p < 1 ? bernoulli<T>(shape, 1 - p) : Array<T>(shape, T{0}));
  kernels::scale(detail::dropout_scale<T>(p), detail::data(mask), detail::data(mask), mask.size());
  Variable<T> y = detail::empty<T>(shape);
  kernels::mul(detail::data(x), detail::data(std::as_const(mask)), detail::data(y), y.size());
  return record<T>(
      ops::dropout, std::move(y), Inputs(x), Attributes(p, true), Saved(mask),
      [](Variable<T> dy, Needs, Variable<T> mask) -> Grads<T, 1> { return {detail::masked_mul(dy, mask)}; });
}

#define XGRAD_INSTANTIATE(T) template Variable<T> dropout(const Variable<T>&, double, DropoutOptions);

XGRAD_INSTANTIATE(float)
XGRAD_INSTANTIATE(double)

}  // namespace xgrad
