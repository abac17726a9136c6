#include "rounding.hpp"

#include "../../kernels/pointwise/elementwise.hpp"
#include "detail/pointwise.hpp"
#include "where.hpp"

namespace xgrad {

namespace {

/// An op whose gradient is 0.
template <class T>
Variable<T> flat(const Op<1, 0>& op, void (*f)(const T*, T*, std::size_t), const Variable<T>& x) {
  return record<T>(op, detail::map(f, x), Inputs(x), Saved(), [](Variable<T>, Needs needs) -> Grads<T, 1> {
    return {Variable<T>(Array<T>(needs.shape(0), T{0}))};
  });
}

/// a / b without its fraction; a / b itself may round up to the next whole number.
template <class T>
Variable<T> quotient(const Variable<T>& a, const Variable<T>& b) {
  const Variable<T> y = fmod(a, b);
  return where(Mask(xt::isnan(y.value())), trunc(a / b), round((a - y) / b));
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
  return record<T>(ops::fmod,
                   detail::map_pairs(ops::fmod.name, kernels::Binary::fmod, kernels::fmod<T>, a, b),
                   Inputs(a, b), Saved(if_requires_grad(b, a), if_requires_grad(b, b)),
                   [](Variable<T> dy, Needs needs, Variable<T> a, Variable<T> b) -> Grads<T, 2> {
                     return {detail::reduced(needs, 0, dy),
                             needs[1] ? detail::reduced(needs, 1, -(dy * quotient(a.detach(), b.detach())))
                                      : Variable<T>()};
                   });
}

#define XGRAD_INSTANTIATE(T)                      \
  template Variable<T> floor(const Variable<T>&); \
  template Variable<T> ceil(const Variable<T>&);  \
  template Variable<T> round(const Variable<T>&); \
  template Variable<T> trunc(const Variable<T>&); \
  template Variable<T> sign(const Variable<T>&);  \
  template Variable<T> fmod(const Variable<T>&, const Variable<T>&);

XGRAD_INSTANTIATE(float)
XGRAD_INSTANTIATE(double)

}  // namespace xgrad
