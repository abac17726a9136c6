#include "where.hpp"

#include <limits>

#include "../../graph/record.hpp"
#include "../../kernels/pointwise/binary.hpp"
#include "../pointwise/broadcast.hpp"
#include "masked_fill.hpp"

namespace xgrad {

template <class T>
Variable<T> where(const Mask& condition, const Variable<T>& a, const Variable<T>& b) {
  const Shape values = detail::broadcast_shape("where", a.shape(), b.shape());
  const Shape shape = detail::broadcast_shape("where", condition.shape(), values, "condition", "a and b");
  Variable<T> y = detail::empty<T>(shape, "where");
  const detail::Strides condition_strides = detail::broadcast_strides(condition.shape(), shape),
                        a_strides = detail::broadcast_strides(a.shape(), shape),
                        b_strides = detail::broadcast_strides(b.shape(), shape);
  kernels::where<T>(shape, {condition.data(), condition_strides}, {detail::data(a), a_strides},
                    {detail::data(b), b_strides}, detail::data(y));
  return record<T>(ops::where, std::move(y), Inputs(a, b), Attributes(condition), Saved(condition),
                   [](Variable<T> dy, Needs needs, const Mask& condition) -> Grads<T, 2> {
                     Grads<T, 2> grads;
                     if (needs[0]) grads[0] = detail::summed(masked_fill(dy, !condition, 0), needs.shape(0));
                     if (needs[1]) grads[1] = detail::summed(masked_fill(dy, condition, 0), needs.shape(1));
                     return grads;
                   });
}

template <class T>
Variable<T> nan_to_num(const Variable<T>& x, std::type_identity_t<T> nan,
                       std::type_identity_t<std::optional<T>> posinf,
                       std::type_identity_t<std::optional<T>> neginf) {
  using Limits = std::numeric_limits<T>;
  const Variable<T> number = masked_fill(x, xt::isnan(x.value()), nan),
                    below = masked_fill(number, xt::equal(x.value(), Limits::infinity()),
                                        posinf.value_or(Limits::max()));
  return masked_fill(below, xt::equal(x.value(), -Limits::infinity()), neginf.value_or(Limits::lowest()));
}

#define XGRAD_INSTANTIATE(T)                                                       \
  template Variable<T> where(const Mask&, const Variable<T>&, const Variable<T>&); \
  template Variable<T> nan_to_num(const Variable<T>&, T, std::optional<T>, std::optional<T>);

XGRAD_INSTANTIATE(float)
XGRAD_INSTANTIATE(double)

}  // namespace xgrad
