#include "arithmetic.hpp"

#include <limits>

#include "../../graph/kernel_backward.hpp"
#include "../../kernels/pointwise/binary.hpp"
#include "../../kernels/pointwise/elementwise.hpp"
#include "../index/masked_fill.hpp"
#include "detail/pointwise.hpp"
#include "detail/weighted.hpp"
#include "elementwise.hpp"

namespace xgrad {
namespace {

using detail::map_pairs, detail::reduced;

/// The gradients of a and b where y is a function of a - b, and da that of the broadcast a.
template <class T>
Grads<T, 2> difference_grads(Needs needs, const Variable<T>& da) {
  return {reduced(needs, 0, da), needs[1] ? neg(reduced(needs, 1, da)) : Variable<T>()};
}

/// What of dy goes to a where the larger of a and b gets all, and equal ones half of it each.
template <class T>
Variable<T> larger_part(const Variable<T>& dy, const Variable<T>& a, const Variable<T>& b) {
  return detail::masked_mul(
      dy, map_pairs<T>(ops::maximum.name, kernels::Binary::maximum_share, kernels::maximum_share<T>, a, b));
}

}  // namespace

namespace detail {

template <class T>
Variable<T> masked_mul(const Variable<T>& x, const Variable<T>& mask) {
  return record<T>(
      ops::masked_mul,
      map_pairs<T>(ops::masked_mul.name, kernels::Binary::masked_mul, kernels::masked_mul<T>, x, mask),
      Inputs(x, mask), Saved(mask), [](Variable<T> dy, Needs needs, Variable<T> mask) -> Grads<T, 2> {
        return {summed(masked_mul(dy, mask), needs.shape(0)), Variable<T>()};
      });
}

template <class T>
Variable<T> squared_difference(const Variable<T>& a, const Variable<T>& b) {
  return record<T>(ops::squared_difference,
                   map_pairs<T>(ops::squared_difference.name, kernels::Binary::squared_difference,
                                kernels::squared_difference<T>, a, b),
                   Inputs(a, b), Saved(a, b),
                   KernelBackward(
                       [](const Variable<T>& dy, Needs needs, const Variable<T>& a, const Variable<T>& b) {
                         Variable<T> da = a - b;
                         kernels::square_grad(detail::data(dy), detail::data(std::as_const(da)),
                                              detail::data(da), da.size());
                         return difference_grads(needs, da);
                       },
                       [](const Variable<T>& dy, Needs needs, const Variable<T>& a, const Variable<T>& b) {
                         return difference_grads(needs, dy * ((a - b) * 2));
                       }));
}

template <class T>
Variable<T> equal(const Variable<T>& a, const Variable<T>& b) {
  return map_pairs<T>("equal", kernels::Binary::equal, kernels::equal<T>, a, b);
}

}  // namespace detail

template <class T>
Variable<T> add(const Variable<T>& a, const Variable<T>& b) {
  return record<T>(ops::add, map_pairs<T>(ops::add.name, kernels::Binary::add, kernels::add<T>, a, b),
                   Inputs(a, b), Saved(), [](Variable<T> dy, Needs needs) -> Grads<T, 2> {
                     return {reduced(needs, 0, dy), reduced(needs, 1, dy)};
                   });
}

template <class T>
Variable<T> sub(const Variable<T>& a, const Variable<T>& b) {
  return record<T>(ops::sub, map_pairs<T>(ops::sub.name, kernels::Binary::sub, kernels::sub<T>, a, b),
                   Inputs(a, b), Saved(),
                   [](Variable<T> dy, Needs needs) { return difference_grads(needs, dy); });
}

template <class T>
Variable<T> mul(const Variable<T>& a, const Variable<T>& b) {
  return record<T>(ops::mul, map_pairs<T>(ops::mul.name, kernels::Binary::mul, kernels::mul<T>, a, b),
                   Inputs(a, b), Saved(if_requires_grad(b, a), if_requires_grad(a, b)),
                   [](Variable<T> dy, Needs needs, Variable<T> a, Variable<T> b) -> Grads<T, 2> {
                     return {needs[0] ? reduced(needs, 0, dy * b) : Variable<T>(),
                             needs[1] ? reduced(needs, 1, dy * a) : Variable<T>()};
                   });
}

template <class T>
Variable<T> div(const Variable<T>& a, const Variable<T>& b) {
  return record<T>(
      ops::div, map_pairs<T>(ops::div.name, kernels::Binary::div, kernels::div<T>, a, b), Inputs(a, b),
      Saved(if_requires_grad(b, a), b),
      [](Variable<T> dy, Needs needs, Variable<T> a, Variable<T> b) -> Grads<T, 2> {
        const Variable<T> da = dy / b;
        return {reduced(needs, 0, da), needs[1] ? neg(reduced(needs, 1, da * (a / b))) : Variable<T>()};
      });
}

template <class T>
Variable<T> add(const Variable<T>& a, std::type_identity_t<T> b) {
  Variable<T> y = detail::empty<T>(a.shape());
  kernels::add_scalar(b, detail::data(a), detail::data(y), a.size());
  return record<T>(ops::add, std::move(y), Inputs(a), Attributes(b), Saved(),
                   [](Variable<T> dy, Needs) -> Grads<T, 1> { return {std::move(dy)}; });
}

template <class T>
Variable<T> sub(const Variable<T>& a, std::type_identity_t<T> b) {
  return add(a, -b);
}

template <class T>
Variable<T> add(const Variable<T>& a, const Variable<T>& b, std::type_identity_t<T> alpha) {
  return add(a, mul(b, alpha));
}

template <class T>
Variable<T> sub(const Variable<T>& a, const Variable<T>& b, std::type_identity_t<T> alpha) {
  return sub(a, mul(b, alpha));
}

template <class T>
Variable<T> mul(const Variable<T>& a, std::type_identity_t<T> b) {
  Variable<T> y = detail::empty<T>(a.shape());
  kernels::scale(b, detail::data(a), detail::data(y), a.size());
  return record<T>(ops::mul, std::move(y), Inputs(a), Attributes(b), Saved(),
                   [b](Variable<T> dy, Needs) -> Grads<T, 1> { return {mul(dy, b)}; });
}

template <class T>
Variable<T> div(const Variable<T>& a, std::type_identity_t<T> b) {
  Variable<T> y = detail::empty<T>(a.shape());
  kernels::div_scalar(b, detail::data(a), detail::data(y), a.size());
  return record<T>(ops::div, std::move(y), Inputs(a), Attributes(b), Saved(),
                   [b](Variable<T> dy, Needs) -> Grads<T, 1> { return {div(dy, b)}; });
}

template <class T>
Variable<T> neg(const Variable<T>& x) {
  return mul(x, T{-1});
}

template <class T>
Variable<T> pow(const Variable<T>& a, const Variable<T>& b) {
  return record<T>(
      ops::pow, map_pairs<T>(ops::pow.name, kernels::Binary::pow, kernels::pow<T>, a, b), Inputs(a, b),
      Saved(a, b, Output()),
      [](Variable<T> dy, Needs needs, Variable<T> a, Variable<T> b, Variable<T> y) -> Grads<T, 2> {
        // Where a recorded gradient is 0 by definition, a is 1: no derivative of it is 0 times infinity.
        const auto without = [&](const Mask& mask) { return grad_enabled() ? masked_fill(a, mask, 1) : a; };
        Grads<T, 2> grads;
        if (needs[0]) {
          // b a^(b - 1) is 0 at b = 0, but its derivative by b is a^-1 where that is finite
          Mask constant = xt::equal(b.value(), T{0});
          if (grad_enabled()) constant = constant && !(xt::abs(a.value()) >= std::numeric_limits<T>::min());
          grads[0] = reduced(needs, 0, masked_fill(dy * (b * pow(without(constant), b - 1)), constant, 0));
        }
        if (needs[1]) {
          const Mask zero = xt::equal(a.value(), T{0}) && b.value() >= T{0};
          const Variable<T> base = without(zero);
          if (grad_enabled()) y = pow(base, b);
          grads[1] = reduced(needs, 1, masked_fill(dy * (y * log(base)), zero, 0));
        }
        return grads;
      });
}

template <class T>
Variable<T> pow(const Variable<T>& a, std::type_identity_t<T> b) {
  if (b == T(-1)) return reciprocal(a);
  if (b == T(-0.5)) return rsqrt(a);
  if (b == T(0.5)) return sqrt(a);
  if (b == 2) return square(a);
  if (b == 3) return detail::cube(a);
  return record<T>(
      ops::pow, map_pairs<T>(ops::pow.name, kernels::Binary::pow, kernels::pow<T>, a, Variable<T>(b)),
      Inputs(a), Attributes(b), Saved(a), [b](Variable<T> dy, Needs, Variable<T> a) -> Grads<T, 1> {
        if (b == 0) return {Variable<T>(Array<T>(a.shape(), T{0}))};
        return {dy * (pow(a, b - 1) * b)};
      });
}

template <class T>
Variable<T> pow(std::type_identity_t<T> a, const Variable<T>& b) {
  return pow(Variable<T>(a), b);
}

template <class T>
Variable<T> maximum(const Variable<T>& a, const Variable<T>& b) {
  return record<T>(ops::maximum,
                   map_pairs<T>(ops::maximum.name, kernels::Binary::maximum, kernels::maximum<T>, a, b),
                   Inputs(a, b), Saved(a, b),
                   [](Variable<T> dy, Needs needs, Variable<T> a, Variable<T> b) -> Grads<T, 2> {
                     return {needs[0] ? reduced(needs, 0, larger_part(dy, a, b)) : Variable<T>(),
                             needs[1] ? reduced(needs, 1, larger_part(dy, b, a)) : Variable<T>()};
                   });
}

template <class T>
Variable<T> minimum(const Variable<T>& a, const Variable<T>& b) {
  return record<T>(ops::minimum,
                   map_pairs<T>(ops::minimum.name, kernels::Binary::minimum, kernels::minimum<T>, a, b),
                   Inputs(a, b), Saved(a, b),
                   [](Variable<T> dy, Needs needs, Variable<T> a, Variable<T> b) -> Grads<T, 2> {
                     return {needs[0] ? reduced(needs, 0, larger_part(dy, b, a)) : Variable<T>(),
                             needs[1] ? reduced(needs, 1, larger_part(dy, a, b)) : Variable<T>()};
                   });
}

template <class T>
Variable<T> hypot(const Variable<T>& a, const Variable<T>& b) {
  return record<T>(
      ops::hypot, map_pairs<T>(ops::hypot.name, kernels::Binary::hypot, kernels::hypot<T>, a, b),
      Inputs(a, b), Saved(if_requires_grad(a, a), if_requires_grad(b, b), Output()),
      [](Variable<T> dy, Needs needs, Variable<T> a, Variable<T> b, Variable<T> y) -> Grads<T, 2> {
        const Mask origin = xt::equal(y.value(), T{0});
        const Variable<T> radius = masked_fill(y, origin, 1);
        return {needs[0] ? reduced(needs, 0, dy * (a / radius)) : Variable<T>(),
                needs[1] ? reduced(needs, 1, dy * (b / radius)) : Variable<T>()};
      });
}

template <class T>
Variable<T> lerp(const Variable<T>& start, const Variable<T>& end, const Variable<T>& weight) {
  const Shape ends = detail::broadcast_shape("lerp", start.shape(), end.shape(), "start", "end");
  detail::broadcast_shape("lerp", ends, weight.shape(), "start and end", "weight");
  const Variable<T> y = start + weight * (end - start);
  if (!detail::has_nan(y)) return y;
  return detail::weighted(T{1} - weight, start) + detail::weighted(weight, end);  // of infinite ends
}

template <class T>
Variable<T> lerp(const Variable<T>& start, const Variable<T>& end, std::type_identity_t<T> weight) {
  detail::broadcast_shape("lerp", start.shape(), end.shape(), "start", "end");
  const Variable<T> y = start + weight * (end - start);
  return detail::has_nan(y) ? lerp(start, end, Variable<T>(weight)) : y;
}

#define XGRAD_INSTANTIATE(T)                                                               \
  template Variable<T> detail::masked_mul(const Variable<T>&, const Variable<T>&);         \
  template Variable<T> detail::squared_difference(const Variable<T>&, const Variable<T>&); \
  template Variable<T> detail::equal(const Variable<T>&, const Variable<T>&);              \
  template Variable<T> add(const Variable<T>&, const Variable<T>&);                        \
  template Variable<T> add(const Variable<T>&, T);                                         \
  template Variable<T> add(const Variable<T>&, const Variable<T>&, T);                     \
  template Variable<T> sub(const Variable<T>&, const Variable<T>&);                        \
  template Variable<T> sub(const Variable<T>&, T);                                         \
  template Variable<T> sub(const Variable<T>&, const Variable<T>&, T);                     \
  template Variable<T> mul(const Variable<T>&, const Variable<T>&);                        \
  template Variable<T> mul(const Variable<T>&, T);                                         \
  template Variable<T> div(const Variable<T>&, const Variable<T>&);                        \
  template Variable<T> div(const Variable<T>&, T);                                         \
  template Variable<T> neg(const Variable<T>&);                                            \
  template Variable<T> pow(const Variable<T>&, const Variable<T>&);                        \
  template Variable<T> pow(const Variable<T>&, T);                                         \
  template Variable<T> pow(T, const Variable<T>&);                                         \
  template Variable<T> maximum(const Variable<T>&, const Variable<T>&);                    \
  template Variable<T> minimum(const Variable<T>&, const Variable<T>&);                    \
  template Variable<T> hypot(const Variable<T>&, const Variable<T>&);                      \
  template Variable<T> lerp(const Variable<T>&, const Variable<T>&, const Variable<T>&);   \
  template Variable<T> lerp(const Variable<T>&, const Variable<T>&, T);

XGRAD_INSTANTIATE(float)
XGRAD_INSTANTIATE(double)

}  // namespace xgrad
