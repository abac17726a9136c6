#include "trigonometry.hpp"

#include <limits>

#include "../../kernels/pointwise/elementwise.hpp"
#include "../../kernels/pointwise/special.hpp"
#include "../index/masked_fill.hpp"
#include "../index/where.hpp"
#include "arithmetic.hpp"
#include "detail/pointwise.hpp"
#include "elementwise.hpp"

namespace xgrad {

using detail::map, detail::unary;

namespace {

/// 1 - x^2 without cancelling, neither near 1 nor, in its derivatives, near 0.
template <class T>
Variable<T> one_minus_square(const Variable<T>& x) {
  return where(Mask(xt::abs(x.value()) < T(0.5)), 1 - x * x, (1 - x) * (1 + x));
}

}  // namespace

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
               [](const Variable<T>& dy, const Variable<T>& x) { return dy * rsqrt(one_minus_square(x)); });
}

template <class T>
Variable<T> acos(const Variable<T>& x) {
  return unary(ops::acos, map(kernels::acos<T>, x), x, x, [](const Variable<T>& dy, const Variable<T>& x) {
    return -(dy * rsqrt(one_minus_square(x)));
  });
}

template <class T>
Variable<T> atan(const Variable<T>& x) {
  return unary(ops::atan, map(kernels::atan<T>, x), x, x,
               [](const Variable<T>& dy, const Variable<T>& x) { return dy / (1 + x * x); });
}

template <class T>
Variable<T> atan2(const Variable<T>& a, const Variable<T>& b) {
  return record<T>(
      ops::atan2, detail::map_pairs(ops::atan2.name, kernels::Binary::atan2, kernels::atan2<T>, a, b),
      Inputs(a, b), Saved(a, b),
      [](Variable<T> dy, Needs needs, Variable<T> a, Variable<T> b) -> Grads<T, 2> {
        // of a / s and b / s with a constant s, whose squares neither overflow nor vanish
        Array<T> s = xt::maximum(xt::abs(a.value()), xt::abs(b.value()));
        const Mask origin = xt::equal(s, T{0});
        constexpr T most = std::numeric_limits<T>::max();
        s = xt::where(origin, T{1}, xt::minimum(s, most));
        const Variable<T> scale(std::move(s));
        const auto finite = [&](const Variable<T>& v) {  // nan stays
          return where(Mask(xt::isinf(v.value())), clamp(v.detach(), -most, most), v);
        };
        a = finite(a) / scale;
        b = finite(b) / scale;
        const Variable<T> part = masked_fill(dy / scale / masked_fill(a * a + b * b, origin, 1), origin, 0);
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

template <class T>
Variable<T> asinh(const Variable<T>& x) {
  return unary(ops::asinh, map(kernels::asinh<T>, x), x, x,
               [](const Variable<T>& dy, const Variable<T>& x) { return dy / hypot(x, 1); });
}

template <class T>
Variable<T> acosh(const Variable<T>& x) {
  return unary(ops::acosh, map(kernels::acosh<T>, x), x, x, [](const Variable<T>& dy, const Variable<T>& x) {
    return dy * (rsqrt(x - 1) * rsqrt(x + 1));
  });
}

template <class T>
Variable<T> atanh(const Variable<T>& x) {
  // nan outside of [-1, 1] by the root
  return unary(ops::atanh, map(kernels::atanh<T>, x), x, x, [](const Variable<T>& dy, const Variable<T>& x) {
    return dy * square(rsqrt(one_minus_square(x)));
  });
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
  template Variable<T> cosh(const Variable<T>&);                      \
  template Variable<T> asinh(const Variable<T>&);                     \
  template Variable<T> acosh(const Variable<T>&);                     \
  template Variable<T> atanh(const Variable<T>&);

XGRAD_INSTANTIATE(float)
XGRAD_INSTANTIATE(double)

}  // namespace xgrad
