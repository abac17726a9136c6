#include "special.hpp"

#include <numbers>

#include "../../kernels/pointwise/special.hpp"
#include "detail/pointwise.hpp"
#include "elementwise.hpp"

namespace xgrad {

using detail::map, detail::unary;

template <class T>
Variable<T> lgamma(const Variable<T>& x) {
  return unary(ops::lgamma, map(kernels::lgamma<T>, x), x, x,
               [](const Variable<T>& dy, const Variable<T>& x) { return dy * digamma(x); });
}

template <class T>
Variable<T> digamma(const Variable<T>& x) {
  return unary(ops::digamma, map(kernels::polygamma<T>, x, 0), x, x,
               [](const Variable<T>& dy, const Variable<T>& x) { return dy * polygamma(1, x); });
}

template <class T>
Variable<T> polygamma(int n, const Variable<T>& x) {
  if (n < 0) detail::fail<ValueError>("polygamma: n must not be negative, got ", n);
  return record<T>(ops::polygamma, map(kernels::polygamma<T>, x, static_cast<unsigned>(n)), Inputs(x),
                   Attributes(n), Saved(x), [n](Variable<T> dy, Needs, Variable<T> x) -> Grads<T, 1> {
                     return {dy * polygamma(n + 1, x)};
                   });
}

template <class T>
Variable<T> erfc(const Variable<T>& x) {
  return unary(ops::erfc, map(kernels::erfc<T>, x), x, x, [](const Variable<T>& dy, const Variable<T>& x) {
    return dy * exp(-(x * x)) * (-2 * std::numbers::inv_sqrtpi_v<T>);
  });
}

template <class T>
Variable<T> erfinv(const Variable<T>& x) {
  return unary(ops::erfinv, map(kernels::erfinv<T>, x), x, Output(),
               [](const Variable<T>& dy, const Variable<T>& y) {
                 return dy * exp(y * y) * (T(0.5) / std::numbers::inv_sqrtpi_v<T>);
               });
}

#define XGRAD_INSTANTIATE(T)                               \
  template Variable<T> lgamma(const Variable<T>&);         \
  template Variable<T> digamma(const Variable<T>&);        \
  template Variable<T> polygamma(int, const Variable<T>&); \
  template Variable<T> erfc(const Variable<T>&);           \
  template Variable<T> erfinv(const Variable<T>&);

XGRAD_INSTANTIATE(float)
XGRAD_INSTANTIATE(double)

}  // namespace xgrad
