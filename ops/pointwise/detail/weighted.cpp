#include "weighted.hpp"

#include <algorithm>
#include <cmath>

#include "../../index/masked_fill.hpp"
#include "../arithmetic.hpp"

namespace xgrad::detail {

template <class T>
bool has_nan(const Variable<T>& x) {
  const T* const elements = data(x);
  int found = 0;  // no early end, so that the compiler can vectorize the loop
  for (std::size_t i = 0; i < x.size(); ++i) found |= static_cast<int>(std::isnan(elements[i]));
  return found != 0;
}

template <class T>
Variable<T> weighted(const Variable<T>& weight, const Variable<T>& x) {
  Variable<T> y = weight * x;
  if (!has_nan(y)) return y;
  const Mask excluded = xt::equal(weight.value(), T{0}) && xt::isinf(x.value());
  if (std::none_of(excluded.begin(), excluded.end(), [](bool one) { return one; })) return y;
  return weight * masked_fill(x, excluded, T{0});
}

#define XGRAD_INSTANTIATE(T)                 \
  template bool has_nan(const Variable<T>&); \
  template Variable<T> weighted(const Variable<T>&, const Variable<T>&);

XGRAD_INSTANTIATE(float)
XGRAD_INSTANTIATE(double)

}  // namespace xgrad::detail
