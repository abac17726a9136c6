#include "logarithms.hpp"

#include <numbers>

#include "../../kernels/pointwise/elementwise.hpp"
#include "../../kernels/pointwise/special.hpp"
#include "../index/masked_fill.hpp"
#include "detail/pointwise.hpp"
#include "elementwise.hpp"

namespace xgrad {

using detail::map, detail::unary;

template <class T>
Variable<T> exp2(const Variable<T>& x) {
  return unary(ops::exp2, map(kernels::exp2<T>, x), x, Output(),
               [](const Variable<T>& dy, const Variable<T>& y) { return dy * (y * std::numbers::ln2_v<T>); });
}

template <class T>
Variable<T> expm1(const Variable<T>& x) {
  return unary(ops::expm1, map(kernels::expm1<T>, x), x, x,
               [](const Variable<T>& dy, const Variable<T>& x) { return dy * exp(x); });
}

template <class T>
Variable<T> log1p(const Variable<T>& x) {
  return unary(ops::log1p, map(kernels::log1p<T>, x), x, x,
               [](const Variable<T>& dy, const Variable<T>& x) { return dy / (x + 1); });
}

template <class T>
Variable<T> log2(const Variable<T>& x) {
  return unary(ops::log2, map(kernels::log2<T>, x), x, x,
               [](const Variable<T>& dy, const Variable<T>& x) { return dy / (x * std::numbers::ln2_v<T>); });
}

template <class T>
Variable<T> log10(const Variable<T>& x) {
  return unary(ops::log10, map(kernels::log10<T>, x), x, x, [](const Variable<T>& dy, const Variable<T>& x) {
    return dy / (x * std::numbers::ln10_v<T>);
  });
}

template <class T>
Variable<T> xlogy(const Variable<T>& a, const Variable<T>& b) {
  return record<T>(ops::xlogy,
                   detail::map_pairs(ops::xlogy.name, kernels::Binary::xlogy, kernels::xlogy<T>, a, b),
                   Inputs(a, b), Saved(a, b),
                   [](Variable<T> dy, Needs needs, Variable<T> a, Variable<T> b) -> Grads<T, 2> {
                     Grads<T, 2> grads;
                     if (needs[0]) {
                       const Mask zero = xt::equal(a.value(), T{0}) && b.value() <= T{0};
                       grads[0] = detail::reduced(needs, 0, masked_fill(xlogy(dy, b), zero, 0));
                     }
                     if (needs[1]) grads[1] = detail::reduced(needs, 1, dy * (a / b));
                     return grads;
                   });
}

template <class T>
Variable<T> logaddexp(const Variable<T>& a, const Variable<T>& b) {
  return record<T>(
      ops::logaddexp,
      detail::map_pairs(ops::logaddexp.name, kernels::Binary::logaddexp, kernels::logaddexp<T>, a, b),
      Inputs(a, b), Saved(a, b),
      [](Variable<T> dy, Needs needs, Variable<T> a, Variable<T> b) -> Grads<T, 2> {
        const Variable<T> difference = a - b;
        return {needs[0] ? detail::reduced(needs, 0, dy * sigmoid(difference)) : Variable<T>(),
                needs[1] ? detail::reduced(needs, 1, dy * sigmoid(-difference)) : Variable<T>()};
      });
}

#define XGRAD_INSTANTIATE(T)                                          \
  template Variable<T> exp2(const Variable<T>&);                      \
  template Variable<T> expm1(const Variable<T>&);                     \
  template Variable<T> log1p(const Variable<T>&);                     \
  template Variable<T> log2(const Variable<T>&);                      \
  template Variable<T> log10(const Variable<T>&);                     \
  template Variable<T> xlogy(const Variable<T>&, const Variable<T>&); \
  template Variable<T> logaddexp(const Variable<T>&, const Variable<T>&);

XGRAD_INSTANTIATE(float)
XGRAD_INSTANTIATE(double)

}  // namespace xgrad
