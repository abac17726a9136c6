#include "arithmetic.hpp"

#include <algorithm>
#include <functional>
#include <numeric>

#include "../graph/kernel_backward.hpp"
#include "../kernels/binary.hpp"
#include "../kernels/elementwise.hpp"
#include "../kernels/permute.hpp"
#include "../kernels/pieces.hpp"
#include "../kernels/reduce.hpp"
#include "detail/pointwise.hpp"
#include "elementwise.hpp"
#include "masked_fill.hpp"

namespace xgrad {
namespace detail {

std::optional<Shape> common_shape(const Shape& a, const Shape& b) {
  const Shape& longer = a.size() >= b.size() ? a : b;
  const Shape& shorter = a.size() >= b.size() ? b : a;
  Shape shape = longer;
  const std::size_t shift = longer.size() - shorter.size();
  for (std::size_t axis = 0; axis < shorter.size(); ++axis) {
    std::size_t& length = shape[shift + axis];
    if (length == 1) {
      length = shorter[axis];
    } else if (shorter[axis] != 1 && shorter[axis] != length) {
      return std::nullopt;
    }
  }
  return shape;
}

Shape broadcast_shape(const char* op, const Shape& a, const Shape& b, const char* a_name,
                      const char* b_name) {
  std::optional<Shape> shape = common_shape(a, b);
  if (!shape) fail<ShapeError>(op, ": shapes must broadcast, got ", a_name, " ", a, " and ", b_name, " ", b);
  return *std::move(shape);
}

bool stretches_to(const Shape& from, const Shape& to) {
  if (from.size() > to.size()) return false;
  const std::size_t shift = to.size() - from.size();
  for (std::size_t axis = 0; axis < from.size(); ++axis) {
    if (from[axis] != 1 && from[axis] != to[shift + axis]) return false;
  }
  return true;
}

Strides row_major_strides(const Shape& shape) {
  Strides strides(shape.size(), 0);
  std::ptrdiff_t stride = 1;
  for (std::size_t axis = shape.size(); axis-- > 0;) {
    strides[axis] = stride;
    stride *= static_cast<std::ptrdiff_t>(shape[axis]);
  }
  return strides;
}

Strides broadcast_strides(const Shape& shape, const Shape& target) {
  const Strides own = row_major_strides(shape);
  Strides strides(target.size(), 0);
  const std::size_t shift = target.size() - shape.size();
  for (std::size_t axis = 0; axis < shape.size(); ++axis)
    strides[shift + axis] = shape[axis] == 1 ? 0 : own[axis];
  return strides;
}

}  // namespace detail

namespace {

using detail::map_pairs, detail::reduced, detail::stretches_to;

/// The gradients of a and b where y is a function of a - b, and da that of the broadcast a.
template <class T>
Grads<T, 2> difference_grads(Needs needs, const Variable<T>& da) {
  return {reduced(needs, 0, da), needs[1] ? neg(reduced(needs, 1, da)) : Variable<T>()};
}

/// Neighbouring axes [first, last).
struct AxisRun {
  std::size_t first, last;
};

std::size_t product_of(const Shape& shape, std::size_t first, std::size_t last) {
  return std::accumulate(shape.begin() + static_cast<std::ptrdiff_t>(first),
                         shape.begin() + static_cast<std::ptrdiff_t>(last), std::size_t{1},
                         std::multiplies());
}

/// Of the first `axes` axes of shape, the last run along which `kept` is stretched to it; without any, none.
AxisRun last_run(const Shape& shape, const Shape& kept, std::size_t axes) {
  const std::size_t shift = shape.size() - kept.size();
  const auto is_stretched = [&](std::size_t axis) { return axis < shift || kept[axis - shift] == 1; };
  for (std::size_t last = axes; last > 0;) {
    std::size_t first = last;
    while (first > 0 && is_stretched(first - 1)) --first;
    if (product_of(shape, first, last) != 1) return {first, last};
    last = first == last ? last - 1 : first;
  }
  return {0, 0};
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
void reduce_axes(ReduceMiddle<T> reduce, const Variable<T>& x, const Shape& shape, const Shape& kept, T* y) {
  const T* from = data(x);
  if (const std::size_t times = times_repeated(kept, shape); times > 1)  // what follows comes to that, too
    return reduce(from, 1, times, element_count(kept), y);
  AxisRun run = last_run(shape, kept, shape.size());
  if (run.last == 0) {
    std::copy_n(from, x.size(), y);
    return;
  }
  std::size_t inner = product_of(shape, run.last, shape.size());
  for (Variable<T> part;;) {
    const AxisRun next = last_run(shape, kept, run.first);
    const std::size_t outer = product_of(shape, 0, run.first), count = product_of(shape, run.first, run.last);
    if (next.last == 0) return reduce(from, outer, count, inner, y);
    Variable<T> less = empty<T>(Shape{outer, inner});
    reduce(from, outer, count, inner, data(less));
    part = std::move(less);
    from = data(std::as_const(part));
    inner *= product_of(shape, next.last, run.first);
    run = next;
  }
}

template <class T>
void stretch_axes(const T* x, const Shape& kept, const Shape& shape, T* y) {
  const std::size_t rank = shape.size(), size = element_count(shape);
  const AxisRun run = last_run(shape, kept, rank);
  if (kernels::is_one_piece(size, 1) && last_run(shape, kept, run.first).last == 0) {
    kernels::repeat_middle(x, product_of(shape, 0, run.first), product_of(shape, run.first, run.last),
                           product_of(shape, run.last, rank), y);
  } else {
    kernels::permute<T>(shape, {x, broadcast_strides(kept, shape)}, y);
  }
}

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
Variable<T> broadcast_to(const Variable<T>& x, const Shape& shape) {
  if (!stretches_to(x.shape(), shape)) {
    detail::fail<ShapeError>("broadcast_to: x must stretch to shape, got x ", x.shape(), " and shape ",
                             shape);
  }
  Variable<T> y = detail::empty<T>(shape, "broadcast_to");
  detail::stretch_axes(detail::data(x), x.shape(), shape, detail::data(y));
  return record<T>(
      ops::broadcast_to, std::move(y), Inputs(x), Attributes(shape), Saved(),
      [](Variable<T> dy, Needs needs) -> Grads<T, 1> { return {detail::summed(dy, needs.shape(0))}; });
}

template <class T>
Variable<T> sum_to(const Variable<T>& x, const Shape& shape) {
  if (!stretches_to(shape, x.shape())) {
    detail::fail<ShapeError>("sum_to: shape must stretch to x, got x ", x.shape(), " and shape ", shape);
  }
  Variable<T> y = detail::empty<T>(shape, "sum_to");
  detail::reduce_axes(kernels::sum_middle<T>, x, shape, detail::data(y));
  return record<T>(
      ops::sum_to, std::move(y), Inputs(x), Attributes(shape), Saved(),
      [](Variable<T> dy, Needs needs) -> Grads<T, 1> { return {detail::stretched(dy, needs.shape(0))}; });
}

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
        Grads<T, 2> grads;
        if (needs[0]) {
          const Mask constant = xt::equal(b.value(), T{0});
          grads[0] = reduced(needs, 0, masked_fill(dy * (b * pow(a, b - 1)), constant, 0));
        }
        if (needs[1]) {
          const Mask zero = xt::equal(a.value(), T{0}) && b.value() >= T{0};
          grads[1] = reduced(needs, 1, masked_fill(dy * (y * log(a)), zero, 0));
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

#define XGRAD_INSTANTIATE(T)                                                                              \
  template void detail::reduce_axes(ReduceMiddle<T>, const Variable<T>&, const Shape&, const Shape&, T*); \
  template void detail::stretch_axes(const T*, const Shape&, const Shape&, T*);                           \
  template Variable<T> detail::masked_mul(const Variable<T>&, const Variable<T>&);                        \
  template Variable<T> detail::squared_difference(const Variable<T>&, const Variable<T>&);                \
  template Variable<T> detail::equal(const Variable<T>&, const Variable<T>&);                             \
  template Variable<T> broadcast_to(const Variable<T>&, const Shape&);                                    \
  template Variable<T> sum_to(const Variable<T>&, const Shape&);                                          \
  template Variable<T> add(const Variable<T>&, const Variable<T>&);                                       \
  template Variable<T> add(const Variable<T>&, T);                                                        \
  template Variable<T> add(const Variable<T>&, const Variable<T>&, T);                                    \
  template Variable<T> sub(const Variable<T>&, const Variable<T>&);                                       \
  template Variable<T> sub(const Variable<T>&, T);                                                        \
  template Variable<T> sub(const Variable<T>&, const Variable<T>&, T);                                    \
  template Variable<T> mul(const Variable<T>&, const Variable<T>&);                                       \
  template Variable<T> mul(const Variable<T>&, T);                                                        \
  template Variable<T> div(const Variable<T>&, const Variable<T>&);                                       \
  template Variable<T> div(const Variable<T>&, T);                                                        \
  template Variable<T> neg(const Variable<T>&);                                                           \
  template Variable<T> pow(const Variable<T>&, const Variable<T>&);                                       \
  template Variable<T> pow(const Variable<T>&, T);                                                        \
  template Variable<T> pow(T, const Variable<T>&);                                                        \
  template Variable<T> maximum(const Variable<T>&, const Variable<T>&);                                   \
  template Variable<T> minimum(const Variable<T>&, const Variable<T>&);

XGRAD_INSTANTIATE(float)
XGRAD_INSTANTIATE(double)

}  // namespace xgrad
