#include "gated.hpp"

#include "../../graph/fused.hpp"
#include "../../kernels/pointwise/elementwise.hpp"
#include "../detail/entry_of.hpp"
#include "../detail/kernel_grads.hpp"
#include "../index/indexing.hpp"
#include "arithmetic.hpp"
#include "elementwise.hpp"

namespace xgrad {
namespace {

template <class T>
struct GateKernels {
  const char* name;
  void (*forward)(const T*, const T*, T*, std::size_t);
  void (*backward)(const T*, const T*, const T*, T*, T*, std::size_t);
  Variable<T> (*function)(const Variable<T>&);
};

template <class T>
const GateKernels<T>& kernels_of(Gate f) {
  using V = Variable<T>;
  static const GateKernels<T> all[] = {
      {"sigmoid", kernels::gated_sigmoid<T>, kernels::gated_sigmoid_grad<T>, sigmoid<T>},
      {"relu", kernels::gated_relu<T>, kernels::gated_relu_grad<T>, relu<T>},
      {"silu", kernels::gated_silu<T>, kernels::gated_silu_grad<T>, silu<T>},
      {"gelu", kernels::gated_gelu<T>, kernels::gated_gelu_grad<T>, [](const V& x) { return gelu(x); }},
      {"gelu_tanh", kernels::gated_gelu_tanh<T>, kernels::gated_gelu_tanh_grad<T>,
       [](const V& x) { return gelu(x, Gelu::tanh); }}};
  return detail::entry_of("gated", "f", all, f);
}

}  // namespace

template <class T>
Variable<T> gated(const Variable<T>& gate, const Variable<T>& x, Gate f) {
  if (!same_shape(gate.shape(), x.shape()))
    detail::fail<ShapeError>("gated: gate and x must have the same shape, got ", gate.shape(), " and ",
                             x.shape());
  const GateKernels<T>& kernel = kernels_of<T>(f);
  const auto forward = [&kernel](const Variable<T>& gate, const Variable<T>& x) {
    Variable<T> y = detail::empty<T>(x.shape());
    kernel.forward(detail::data(gate), detail::data(x), detail::data(y), x.size());
    return y;
  };
  return fused<T>(
      ops::gated, forward(gate, x), Inputs(gate, x), Attributes(kernel.name), Saved(),
      [&kernel](const Variable<T>& gate, const Variable<T>& x) { return kernel.function(gate) * x; },
      RecomputingBackward(
          [&kernel](const Variable<T>& dy, Needs needs, const Variable<T>& gate,
                    const Variable<T>& x) -> Grads<T, 2> {
            Variable<T> dgate = detail::empty<T>(gate.shape()), dx = detail::empty<T>(gate.shape());
            kernel.backward(detail::data(dy), detail::data(gate), detail::data(x), detail::data(dgate),
                            detail::data(dx), gate.size());
            return {needs[0] ? dgate : Variable<T>(), needs[1] ? dx : Variable<T>()};
          },
          forward));
}

template <class T>
Variable<T> glu(const Variable<T>& x, Int dim) {
  const std::size_t axis = detail::normalize_axis("glu", dim, x.shape());
  if (x.shape()[axis] % 2 != 0)
    detail::fail<ShapeError>("glu: the length of x along dim must be even, got x ", x.shape(), " and dim ",
                             static_cast<std::ptrdiff_t>(dim));
  const auto half = static_cast<std::ptrdiff_t>(x.shape()[axis] / 2);
  return gated(narrow(x, axis, half, half), narrow(x, axis, 0, half), Gate::sigmoid);
}

#define XGRAD_INSTANTIATE(T)                                                \
  template Variable<T> gated(const Variable<T>&, const Variable<T>&, Gate); \
  template Variable<T> glu(const Variable<T>&, Int);

XGRAD_INSTANTIATE(float)
XGRAD_INSTANTIATE(double)

}  // namespace xgrad
