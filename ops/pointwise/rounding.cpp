#include "rounding.hpp"

#include "../../kernels/pointwise/elementwise.hpp"
#include "../index/where.hpp"
#include "detail/pointwise.hpp"

namespace xgrad {

namespace {

/// An op whose gradient is 0.
template <class T>
Variable<T> flat(StaticOp<1, 0> op, void (*f)(const T*, T*, std::size_t), const Variable<T>& x) {
  return record<T>(op, detail::map(f, x), Inputs(x), Saved(), [](Variable<T>, Needs needs) -> Grads<T, 1> {
    return {Variable<T>(Array<T>(needs.shape(0), T{0}))};
  });
}

/// The remainder f(a, b) of a / b and its gradients, -dy times the whole quotient for b. That is the quotient
/// of what the remainder leaves, for a / b itself may round to the next whole number; where the remainder is
/// not finite, `whole` rounds a / b.
template <class T>
Variable<T> remainder_op(StaticOp<2, 0> op, kernels::Binary kernel,
                         void (*contiguous)(const T*, const T*, T*, std::size_t),
                         Variable<T> (*f)(const Variable<T>&, const Variable<T>&),
                         Variable<T> (*whole)(const Variable<T>&), const Variable<T>& a,
                         const Variable<T>& b) {
  return record<T>(op, detail::map_pairs(op.info().name, kernel, contiguous, a, b), Inputs(a, b),
                   Saved(if_requires_grad(b, a), if_requires_grad(b, b)),
                   [f, whole](Variable<T> dy, Needs needs, Variable<T> a, Variable<T> b) -> Grads<T, 2> {
                     if (!needs[1]) return {detail::reduced(needs, 0, dy), Variable<T>()};
                     a = a.detach(), b = b.detach();
                     const Variable<T> y = f(a, b);
                     const Variable<T> quotient =
                         where(Mask(xt::isfinite(y.value())), round((a - y) / b), whole(a / b));
                     return {detail::reduced(needs, 0, dy), detail::reduced(needs, 1, -(dy * quotient))};
                   });
}

}  // namespace

template <class T>
Variable<T> floor(const Variable<T>& x) {
  return flat(ops::floor, kernels::floor<T>, x);
}

template <class T>
Variable<T> ceil(const Variable<T>& x) {
  return flat(ops::ceil, kernels::ceil<T>, x);
}

template <class T>
Variable<T> round(const Variable<T>& x) {
  return flat(ops::round, kernels::round<T>, x);
}

template <class T>
Variable<T> trunc(const Variable<T>& x) {
  return flat(ops::trunc, kernels::trunc<T>, x);
}

template <class T>
Variable<T> sign(const Variable<T>& x) {
  return flat(ops::sign, kernels::sign<T>, x);
}

template <class T>
Variable<T> fmod(const Variable<T>& a, const Variable<T>& b) {
  return remainder_op(ops::fmod, kernels::Binary::fmod, kernels::fmod<T>, fmod<T>, trunc<T>, a, b);
}

template <class T>
Variable<T> remainder(const Variable<T>& a, const Variable<T>& b) {
  return remainder_op(ops::remainder, kernels::Binary::remainder, kernels::remainder<T>, remainder<T>,
                      floor<T>, a, b);
}

#define XGRAD_INSTANTIATE(T)                                         \
  template Variable<T> floor(const Variable<T>&);                    \
  template Variable<T> ceil(const Variable<T>&);                     \
  template Variable<T> round(const Variable<T>&);                    \
  template Variable<T> trunc(const Variable<T>&);                    \
  template Variable<T> sign(const Variable<T>&);                     \
  template Variable<T> fmod(const Variable<T>&, const Variable<T>&); \
  template Variable<T> remainder(const Variable<T>&, const Variable<T>&);

XGRAD_INSTANTIATE(float)
XGRAD_INSTANTIATE(double)

}  // namespace xgrad
