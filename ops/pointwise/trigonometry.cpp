#include "trigonometry.hpp"

#include "../../kernels/pointwise/elementwise.hpp"
#include "../../kernels/pointwise/special.hpp"
#include "detail/pointwise.hpp"
#include "elementwise.hpp"

namespace xgrad {

using detail::map, detail::unary;

template <class T>
Variable<T> sin(const Variable<T>& x) {
  return unary(ops::sin, kernels::sin<T>, kernels::sin_grad<T>, x, x,
               [](const Variable<T>& dy, const Variable<T>& x) { return dy * cos(x); });
}

template <class T>
Variable<T> cos(const Variable<T>& x) {
  return unary(ops::cos, kernels::cos<T>, kernels::cos_grad<T>, x, x,
               [](const Variable<T>& dy, const Variable<T>& x) { return -(dy * sin(x)); });
}

template <class T>
Variable<T> tan(const Variable<T>& x) {
  return unary(ops::tan, map(kernels::tan<T>, x), x, Output(),
               [](const Variable<T>& dy, const Variable<T>& y) { return dy * (1 + y * y); });
}

template <class T>
Variable<T> asin(const Variable<T>& x) {
  return unary(ops::asin, map(kernels::asin<T>, x), x, x,
               [](const Variable<T>& dy, const Variable<T>& x) { return dy * rsqrt(1 - x * x); });
}

template <class T>
Variable<T> acos(const Variable<T>& x) {
  return unary(ops::acos, map(kernels::acos<T>, x), x, x,
               [](const Variable<T>& dy, const Variable<T>& x) { return -(dy * rsqrt(1 - x * x)); });
}

template <class T>
Variable<T> atan(const Variable<T>& x) {
  return unary(ops::atan, map(kernels::atan<T>, x), x, x,
               [](const Variable<T>& dy, const Variable<T>& x) { return dy / (1 + x * x); });
}

template <class T>
Variable<T> atan2(const Variable<T>& a, const Variable<T>& b) {
  return record<T>(ops::atan2,
                   detail::map_pairs(ops::atan2.name, kernels::Binary::atan2, kernels::atan2<T>, a, b),
                   Inputs(a, b), Saved(a, b),
                   [](Variable<T> dy, Needs needs, Variable<T> a, Variable<T> b) -> Grads<T, 2> {
                     const Variable<T> part = dy / (a * a + b * b);
                     return {needs[0] ? detail::reduced(needs, 0, part * b) : Variable<T>(),
                             needs[1] ? detail::reduced(needs, 1, -(part * a)) : Variable<T>()};
                   });
}

template <class T>
Variable<T> sinh(const Variable<T>& x) {
  return unary(ops::sinh, map(kernels::sinh<T>, x), x, x,
               [](const Variable<T>& dy, const Variable<T>& x) { return dy * cosh(x); });
}

template <class T>
Variable<T> cosh(const Variable<T>& x) {
  return unary(ops::cosh, map(kernels::cosh<T>, x), x, x,
               [](const Variable<T>& dy, const Variable<T>& x) { return dy * sinh(x); });
}

#define XGRAD_INSTANTIATE(T)                                          \
  template Variable<T> sin(const Variable<T>&);                       \
  template Variable<T> cos(const Variable<T>&);                       \
  template Variable<T> tan(const Variable<T>&);                       \
  template Variable<T> asin(const Variable<T>&);                      \
  template Variable<T> acos(const Variable<T>&);                      \
  template Variable<T> atan(const Variable<T>&);                      \
  template Variable<T> atan2(const Variable<T>&, const Variable<T>&); \
  template Variable<T> sinh(const Variable<T>&);                      \
  template Variable<T> cosh(const Variable<T>&);

XGRAD_INSTANTIATE(float)
XGRAD_INSTANTIATE(double)

}  // namespace xgrad
