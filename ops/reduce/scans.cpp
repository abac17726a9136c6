#include "scans.hpp"

#include <limits>

#include "../../graph/fused.hpp"
#include "../../kernels/rows/scan.hpp"
#include "../index/indexing.hpp"
#include "../index/masked_fill.hpp"
#include "../pointwise/elementwise.hpp"
#include "../shape/shapes.hpp"
#include "detail/middle_axis.hpp"

namespace xgrad {
namespace ops {

constexpr Op cumsum_grad("cumsum_grad", {"y"}, {"dim"});
constexpr Op linear_recurrence("linear_recurrence", {"a", "b"}, {"dim", "reversed"});

}  // namespace ops

namespace {

using detail::middle_axis, detail::MiddleAxis;

/// Sums from the first element on or, reversed, from the last. Each is the other's gradient.
template <class T>
Variable<T> running_sum(const Variable<T>& x, std::size_t axis, bool reversed) {
  const MiddleAxis m = middle_axis(axis, x.shape());
  Variable<T> y = detail::empty<T>(x.shape());
  kernels::cumsum(detail::data(x), m.outer, m.length, m.inner, reversed, detail::data(y));
  const StaticOp<1, 1> op = reversed ? StaticOp<1, 1>(ops::cumsum_grad) : StaticOp<1, 1>(ops::cumsum);
  return record<T>(
      op, std::move(y), Inputs(x), Attributes(axis), Saved(),
      [axis, reversed](Variable<T> dy, Needs) -> Grads<T, 1> { return {running_sum(dy, axis, !reversed)}; });
}

/// x moved on by one along the axis, behind `first`.
template <class T>
Variable<T> delayed(const Variable<T>& x, std::size_t axis, T first) {
  Shape shape = x.shape();
  const std::size_t length = middle_axis(axis, shape).length;
  if (length > 1) shape[axis] = 1;
  const Variable<T> head(Array<T>(shape, first));
  if (length <= 1) return head;
  const auto dim = static_cast<int>(axis);
  return cat({head, narrow(x, dim, 0, static_cast<std::ptrdiff_t>(length - 1))}, dim);
}

/// y[i] = b[i] + a[i] y[i - 1] or, reversed, y[i] = b[i] + a[i + 1] y[i + 1]. The two solve a system of
/// linear equations and its transpose, so each is the other's gradient for b.
template <class T>
Variable<T> linear_recurrence(const Variable<T>& a, const Variable<T>& b, std::size_t axis, bool reversed) {
  const MiddleAxis m = middle_axis(axis, b.shape());
  Variable<T> y = detail::empty<T>(b.shape());
  kernels::recurrence(detail::data(a), detail::data(b), m.outer, m.length, m.inner, reversed,
                      detail::data(y));
  return record<T>(
      ops::linear_recurrence, std::move(y), Inputs(a, b), Attributes(axis, reversed), Saved(a, Output()),
      [axis, reversed](Variable<T> dy, Needs needs, Variable<T> a, Variable<T> y) -> Grads<T, 2> {
        const Variable<T> db = linear_recurrence(a, dy, axis, !reversed);
        if (!needs[0]) return {Variable<T>(), db};
        return {reversed ? delayed(db, axis, T{0}) * y : db * delayed(y, axis, T{0}), db};
      });
}

template <class T>
Variable<T> products(const Variable<T>& x, const MiddleAxis& m) {
  Variable<T> y = detail::empty<T>(x.shape());
  kernels::cumprod(detail::data(x), m.outer, m.length, m.inner, detail::data(y));
  return y;
}

/// cumprod, with a gradient that is made of ops.
template <class T>
Variable<T> running_product(const Variable<T>& x, const MiddleAxis& m) {
  return record<T>(ops::cumprod, products(x, m), Inputs(x), Attributes(m.axis), Saved(x, Output()),
                   [axis = m.axis](Variable<T> dy, Needs, Variable<T> x, Variable<T> y) -> Grads<T, 1> {
                     return {linear_recurrence(x, dy, axis, true) * delayed(y, axis, T{1})};
                   });
}

template <class T>
Ranked<T> cumulative_extreme(const char* op, const Variable<T>& x, Int dim, bool largest) {
  const MiddleAxis m = middle_axis(op, dim, x.shape());
  Ids ids = Ids::from_shape(x.shape());
  kernels::cumulative_extreme(detail::data(x), m.outer, m.length, m.inner, largest, ids.data());
  Variable<T> values = gather(x, dim, ids);
  return {std::move(values), std::move(ids)};
}

}  // namespace

template <class T>
Variable<T> cumsum(const Variable<T>& x, Int dim) {
  return running_sum(x, middle_axis("cumsum", dim, x.shape()).axis, false);
}

template <class T>
Variable<T> cumprod(const Variable<T>& x, Int dim) {
  const MiddleAxis m = middle_axis("cumprod", dim, x.shape());
  return fused<T>(
      ops::cumprod, products(x, m), Inputs(x), Attributes(m.axis), Saved(),
      [m](const Variable<T>& x) { return running_product(x, m); },
      [m](const Variable<T>& dy, Needs, const Variable<T>& x) -> Grads<T, 1> {
        Variable<T> dx = detail::empty<T>(x.shape());
        kernels::cumprod_grad(detail::data(dy), detail::data(x), m.outer, m.length, m.inner,
                              detail::data(dx));
        return {std::move(dx)};
      });
}

template <class T>
Variable<T> logcumsumexp(const Variable<T>& x, Int dim) {
  const MiddleAxis m = middle_axis("logcumsumexp", dim, x.shape());
  Variable<T> y = detail::empty<T>(x.shape());
  kernels::logcumsumexp(detail::data(x), m.outer, m.length, m.inner, detail::data(y));
  return record<T>(ops::logcumsumexp, std::move(y), Inputs(x), Attributes(m.axis), Saved(x, Output()),
                   [axis = m.axis](Variable<T> dy, Needs, Variable<T> x, Variable<T> y) -> Grads<T, 1> {
                     // -infinity less itself would be nan
                     using Limits = std::numeric_limits<T>;
                     constexpr T lowest = Limits::lowest() / 2;
                     y = masked_fill(y, xt::equal(y.value(), -Limits::infinity()), lowest);
                     const Variable<T> ratios = exp(delayed(y, axis, lowest) - y);
                     return {exp(x - y) * linear_recurrence(ratios, dy, axis, true)};
                   });
}

template <class T>
Ranked<T> cummax(const Variable<T>& x, Int dim) {
  return cumulative_extreme("cummax", x, dim, true);
}

template <class T>
Ranked<T> cummin(const Variable<T>& x, Int dim) {
  return cumulative_extreme("cummin", x, dim, false);
}

#define XGRAD_INSTANTIATE(T)                                  \
  template Variable<T> cumsum(const Variable<T>&, Int);       \
  template Variable<T> cumprod(const Variable<T>&, Int);      \
  template Variable<T> logcumsumexp(const Variable<T>&, Int); \
  template Ranked<T> cummax(const Variable<T>&, Int);         \
  template Ranked<T> cummin(const Variable<T>&, Int);

XGRAD_INSTANTIATE(float)
XGRAD_INSTANTIATE(double)

}  // namespace xgrad
