#include "comparisons.hpp"

#include "../../base/detail/arrays/broadcast.hpp"

namespace xgrad {

#define XGRAD_COMPARISON(name, ...)                                   \
  template <class T>                                                  \
  Mask name(const Variable<T>& a, const Variable<T>& b) {             \
    detail::broadcast_shape(#name, a.shape(), b.shape());             \
    return __VA_ARGS__;                                               \
  }                                                                   \
  template Mask name(const Variable<float>&, const Variable<float>&); \
  template Mask name(const Variable<double>&, const Variable<double>&);

XGRAD_COMPARISON(eq, xt::equal(a.value(), b.value()))
XGRAD_COMPARISON(ne, xt::not_equal(a.value(), b.value()))
XGRAD_COMPARISON(lt, a.value() < b.value())
XGRAD_COMPARISON(le, a.value() <= b.value())
XGRAD_COMPARISON(gt, a.value() > b.value())
XGRAD_COMPARISON(ge, a.value() >= b.value())

}  // namespace xgrad
