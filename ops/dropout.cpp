#include "dropout.hpp"

#include "../graph/random.hpp"
#include "../kernels/binary.hpp"

namespace xgrad {

template <class T>
Variable<T> dropout(const Variable<T>& x, double p, bool training) {
  if (!(p >= 0 && p <= 1)) detail::fail<ValueError>("dropout: p must be in [0, 1], got ", p);
  if (!training || p == 0) return x;
  if (p == 1) return mul(x, T{0});
  Variable<T> mask(bernoulli<T>(x.shape(), 1 - p));
  kernels::scale(T{1} / static_cast<T>(1 - p), detail::data(mask), detail::data(mask), mask.size());
  return mul(x, mask);
}

#define XGRAD_INSTANTIATE(T) template Variable<T> dropout(const Variable<T>&, double, bool);

XGRAD_INSTANTIATE(float)
XGRAD_INSTANTIATE(double)

}  // namespace xgrad
