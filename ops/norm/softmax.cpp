#include "softmax.hpp"

#include "../../graph/kernel_backward.hpp"
#include "../../kernels/rows/softmax.hpp"
#include "../pointwise/elementwise.hpp"
#include "../reduce/reductions.hpp"
#include "../shape/shapes.hpp"

namespace xgrad {
namespace {

/// f on rows along `dim`; only the last axis lies in memory as rows.
template <class T>
Variable<T> along(const char* op, const Variable<T>& x, Int dim, Variable<T> (*f)(const Variable<T>&)) {
  if (x.dimension() == 0 && (dim == 0 || dim == -1)) return reshape(f(reshape(x, 1)), Shape{});
  const auto axis = static_cast<int>(detail::normalize_axis(op, dim, x.shape()));
  const int last = static_cast<int>(x.dimension()) - 1;
  if (axis == last) return f(x);
  return transpose(f(transpose(x, axis, last)), axis, last);
}

/// y = f(x), or dx = f(dy, y), row by row.
template <class T>
Variable<T> rows(void (*f)(const T*, T*, std::size_t, std::size_t), const Variable<T>& x) {
  Variable<T> y = detail::empty<T>(x.shape());
  f(detail::data(x), detail::data(y), row_count(x.shape()), x.shape().back());
  return y;
}
template <class T>
Variable<T> rows(void (*f)(const T*, const T*, T*, std::size_t, std::size_t), const Variable<T>& dy,
                 const Variable<T>& y) {
  Variable<T> dx = detail::empty<T>(y.shape());
  f(detail::data(dy), detail::data(y), detail::data(dx), row_count(y.shape()), y.shape().back());
  return dx;
}

// [softmax]
template <class T>
Variable<T> softmax_last(const Variable<T>& x) {
  return record<T>(ops::softmax, rows<T>(kernels::softmax_rows<T>, x), Inputs(x), Attributes(-1),
                   Saved(Output()),
                   KernelBackward(
                       [](const Variable<T>& dy, Needs, const Variable<T>& y) -> Grads<T, 1> {
                         return {rows<T>(kernels::softmax_grad_rows<T>, dy, y)};
                       },
                       [](const Variable<T>& dy, Needs, const Variable<T>& y) -> Grads<T, 1> {
                         return {y * (dy - sum(dy * y, -1, {.keepdim = true}))};
                       }));
}
// [softmax]

template <class T>
Variable<T> log_softmax_last(const Variable<T>& x) {
  return record<T>(ops::log_softmax, rows<T>(kernels::log_softmax_rows<T>, x), Inputs(x), Attributes(-1),
                   Saved(Output()),
                   KernelBackward(
                       [](const Variable<T>& dy, Needs, const Variable<T>& y) -> Grads<T, 1> {
                         return {rows<T>(kernels::log_softmax_grad_rows<T>, dy, y)};
                       },
                       [](const Variable<T>& dy, Needs, const Variable<T>& y) -> Grads<T, 1> {
                         return {dy - exp(y) * sum(dy, -1, {.keepdim = true})};
                       }));
}

}  // namespace

template <class T>
Variable<T> softmax(const Variable<T>& x, Int dim) {
  return along<T>("softmax", x, dim, softmax_last<T>);
}

template <class T>
Variable<T> log_softmax(const Variable<T>& x, Int dim) {
  return along<T>("log_softmax", x, dim, log_softmax_last<T>);
}

#define XGRAD_INSTANTIATE(T)                             \
  template Variable<T> softmax(const Variable<T>&, Int); \
  template Variable<T> log_softmax(const Variable<T>&, Int);

XGRAD_INSTANTIATE(float)
XGRAD_INSTANTIATE(double)

}  // namespace xgrad
