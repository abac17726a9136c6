#pragma once

// Shared code of elementwise functions: loops over arrays, and ops with one such loop.

#include <algorithm>
#include <type_traits>
#include <utility>

#include "../../../graph/kernel_backward.hpp"
#include "../../../kernels/pointwise/binary.hpp"
#include "../broadcast.hpp"

namespace xgrad::detail {

/// y[i] = f(x[i], parameters...)
template <class T, class... P>
Variable<T> map(void (*f)(const T*, T*, std::size_t, P...), const Variable<T>& x,
                std::type_identity_t<P>... p) {
  Variable<T> y = empty<T>(x.shape());
  f(data(x), data(y), x.size(), p...);
  return y;
}

/// dx[i] = f(dy[i], saved[i], parameters...)
template <class T, class... P>
Variable<T> map(void (*f)(const T*, const T*, T*, std::size_t, P...), const Variable<T>& dy,
                const Variable<T>& saved, std::type_identity_t<P>... p) {
  Variable<T> dx = empty<T>(dy.shape());
  f(data(dy), data(saved), data(dx), dy.size(), p...);
  return dx;
}

/// y = a op b, which broadcast. `contiguous` is the loop for equal shapes, the common case; a repeated b, a
/// number or a row, is the next most common.
template <class T>
Variable<T> map_pairs(const char* name, kernels::Binary op,
                      void (*contiguous)(const T*, const T*, T*, std::size_t), const Variable<T>& a,
                      const Variable<T>& b) {
  if (same_shape(a.shape(), b.shape())) {
    Variable<T> y = empty<T>(a.shape());
    contiguous(data(a), data(b), data(y), a.size());
    return y;
  }
  if (const std::size_t times = times_repeated(b.shape(), a.shape()); times > 0) {
    const std::size_t lengths[] = {times, b.size()};
    const std::ptrdiff_t steps[] = {static_cast<std::ptrdiff_t>(b.size()), 1}, repeated[] = {0, 1};
    Variable<T> y = empty<T>(a.shape());
    kernels::binary<T>(op, lengths, {data(a), steps}, {data(b), repeated}, data(y));
    return y;
  }
  const Shape shape = broadcast_shape(name, a.shape(), b.shape());
  Variable<T> y = empty<T>(shape, name);
  const Strides a_strides = broadcast_strides(a.shape(), shape);
  const Strides b_strides = broadcast_strides(b.shape(), shape);
  kernels::binary<T>(op, shape, {data(a), a_strides}, {data(b), b_strides}, data(y));
  return y;
}

/// The gradient of operand `i`, if needed, from that of the broadcast operand.
template <class T>
Variable<T> reduced(Needs needs, std::size_t i, const Variable<T>& grad) {
  return needs[i] ? summed(grad, needs.shape(i)) : Variable<T>();
}

/// The op y = f(x) with dx = gradient(dy, s), composed of ops, where s is the saved x or output.
template <class T, class S, class Gradient>
Variable<T> unary(StaticOp<1, 0> op, Variable<T>&& y, const Variable<T>& x, const S& saved,
                  Gradient gradient) {
  return record<T>(
      op, std::move(y), Inputs(x), Saved(saved),
      [gradient](Variable<T> dy, Needs, Variable<T> s) -> Grads<T, 1> { return {gradient(dy, s)}; });
}

/// An op whose dx is one kernel of dy and the saved x or output; `composed` is the same composed of ops, for
/// a recorded backward. Both kernels take the attributes.
template <class T, class S, class Composed, class... P>
Variable<T> unary(StaticOp<1, sizeof...(P)> op, void (*f)(const T*, T*, std::size_t, P...),
                  void (*grad)(const T*, const T*, T*, std::size_t, P...), const Variable<T>& x,
                  const S& saved, Composed composed, std::type_identity_t<P>... p) {
  return record<T>(
      op, map(f, x, p...), Inputs(x), Attributes(p...), Saved(saved),
      KernelBackward([grad, p...](const Variable<T>& dy, Needs,
                                  const Variable<T>& s) -> Grads<T, 1> { return {map(grad, dy, s, p...)}; },
                     [composed](const Variable<T>& dy, Needs, const Variable<T>& s) -> Grads<T, 1> {
                       return {composed(dy, s)};
                     }));
}

}  // namespace xgrad::detail
