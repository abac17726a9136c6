#include "broadcast.hpp"

#include <algorithm>
#include <functional>
#include <numeric>

#include "../../base/detail/system/pieces.hpp"
#include "../../graph/record.hpp"
#include "../../kernels/index/permute.hpp"
#include "../../kernels/rows/reduce.hpp"

namespace xgrad {
namespace {

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

}  // namespace detail

template <class T>
Variable<T> broadcast_to(const Variable<T>& x, const Shape& shape) {
  if (!detail::stretches_to(x.shape(), shape)) {
    detail::fail<ShapeError>("broadcast_to: x must broadcast to shape, got x ", x.shape(), " and shape ",
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
  if (!detail::stretches_to(shape, x.shape())) {
    detail::fail<ShapeError>("sum_to: shape must broadcast to x, got x ", x.shape(), " and shape ", shape);
  }
  Variable<T> y = detail::empty<T>(shape, "sum_to");
  detail::reduce_axes(kernels::sum_middle<T>, x, shape, detail::data(y));
  return record<T>(
      ops::sum_to, std::move(y), Inputs(x), Attributes(shape), Saved(),
      [](Variable<T> dy, Needs needs) -> Grads<T, 1> { return {detail::stretched(dy, needs.shape(0))}; });
}

#define XGRAD_INSTANTIATE(T)                                                                              \
  template void detail::reduce_axes(ReduceMiddle<T>, const Variable<T>&, const Shape&, const Shape&, T*); \
  template void detail::stretch_axes(const T*, const Shape&, const Shape&, T*);                           \
  template Variable<T> broadcast_to(const Variable<T>&, const Shape&);                                    \
  template Variable<T> sum_to(const Variable<T>&, const Shape&);

XGRAD_INSTANTIATE(float)
XGRAD_INSTANTIATE(double)

}  // namespace xgrad
