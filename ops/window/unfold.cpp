#include "unfold.hpp"

#include <limits>

#include "../../graph/record.hpp"
#include "../../kernels/pointwise/binary.hpp"
#include "../../kernels/window/windows.hpp"
#include "detail/axes.hpp"

namespace xgrad {
namespace ops {

constexpr Op unfold_grad("unfold_grad", {"dy"}), fold_grad("fold_grad", {"dy"});

}  // namespace ops

namespace {

using detail::PerAxis, kernels::Windows;

Windows unfolded_windows(const char* op, std::size_t rows, std::size_t cols, const Dims& kernel_size,
                         const UnfoldOptions& options) {
  const PerAxis kernel = detail::per_axis(op, "kernel_size", kernel_size, 2, 1, 1);
  const PerAxis dilation = detail::per_axis(op, "dilation", options.dilation, 2, 1, 1);
  const PerAxis padding = detail::per_axis(op, "padding", options.padding, 2, 0, 0);
  const PerAxis stride = detail::per_axis(op, "stride", options.stride, 2, 1, 1);
  const Windows windows{
      detail::window_axis(rows, kernel.rows, stride.rows, padding.rows, 2 * padding.rows, dilation.rows),
      detail::window_axis(cols, kernel.cols, stride.cols, padding.cols, 2 * padding.cols, dilation.cols)};
  constexpr std::size_t most =
      std::numeric_limits<std::int32_t>::max();  // so that their product with channels is a size
  if (windows.size() > most) {
    detail::fail<ValueError>(op, ": kernel_size must have at most ", most, " elements, got ",
                             to_string(kernel_size));
  }
  if (windows.count() == 0) {
    detail::fail<ShapeError>(op, ": a window must not be longer than the image with its padding, got (", rows,
                             ", ", cols, "), kernel_size ", to_string(kernel_size), " and dilation ",
                             to_string(options.dilation));
  }
  return windows;
}

/// The images of an array and its columns.
struct Unfolding {
  std::size_t batch, channels;
  Windows windows;
  Shape images, columns;
};

template <class T, class... A>
Variable<T> folded(StaticOp<1, sizeof...(A)> op, const Unfolding& call, const Variable<T>& x,
                   const Attributes<A...>& attributes);

template <class T, class... A>
Variable<T> unfolded(StaticOp<1, sizeof...(A)> op, const Unfolding& call, const Variable<T>& x,
                     const Attributes<A...>& attributes) {
  Variable<T> y = detail::empty<T>(call.columns, op.info().name);
  kernels::unfold<T>(detail::data(x), call.batch * call.channels, call.windows, 0, call.windows.count(),
                     detail::data(y));
  return record<T>(op, std::move(y), Inputs(x), attributes, Saved(),
                   [call](Variable<T> dy, Needs) -> Grads<T, 1> {
                     return {folded(ops::unfold_grad, call, dy, Attributes())};
                   });
}

template <class T, class... A>
Variable<T> folded(StaticOp<1, sizeof...(A)> op, const Unfolding& call, const Variable<T>& x,
                   const Attributes<A...>& attributes) {
  Variable<T> y = detail::empty<T>(call.images, op.info().name);
  kernels::fill(T(0), detail::data(y), y.size());
  kernels::fold<T>(detail::data(x), call.batch * call.channels, call.windows, 0, call.windows.count(),
                   detail::data(y));
  return record<T>(op, std::move(y), Inputs(x), attributes, Saved(),
                   [call](Variable<T> dy, Needs) -> Grads<T, 1> {
                     return {unfolded(ops::fold_grad, call, dy, Attributes())};
                   });
}

}  // namespace

template <class T>
Variable<T> unfold(const Variable<T>& x, const Dims& kernel_size, UnfoldOptions options) {
  const detail::Images of_x = detail::images("unfold", x.shape(), 2);
  const Windows windows = unfolded_windows("unfold", of_x.rows, of_x.cols, kernel_size, options);
  const Shape columns = detail::image_shape(of_x, of_x.channels * windows.size(), 1, windows.count(), 1);
  return unfolded(ops::unfold, {of_x.batch, of_x.channels, windows, x.shape(), columns}, x,
                  Attributes(kernel_size, options.dilation, options.padding, options.stride));
}

template <class T>
Variable<T> fold(const Variable<T>& x, const Dims& output_size, const Dims& kernel_size,
                 UnfoldOptions options) {
  const detail::Images of_x = detail::images("fold", x.shape(), 1);
  const PerAxis size = detail::per_axis("fold", "output_size", output_size, 2, 1, 1);
  const Windows windows = unfolded_windows("fold", size.rows, size.cols, kernel_size, options);
  if (of_x.channels % windows.size() != 0 || of_x.cols != windows.count()) {
    detail::fail<ShapeError>("fold: x must have columns of a multiple of ", windows.size(),
                             " elements, one for each of ", windows.count(), " windows, got x ", x.shape());
  }
  const std::size_t channels = of_x.channels / windows.size();
  const Shape images = detail::image_shape(of_x, channels, size.rows, size.cols, 2);
  return folded(ops::fold, {of_x.batch, channels, windows, images, x.shape()}, x,
                Attributes(output_size, kernel_size, options.dilation, options.padding, options.stride));
}

#define XGRAD_INSTANTIATE(T)                                                   \
  template Variable<T> unfold(const Variable<T>&, const Dims&, UnfoldOptions); \
  template Variable<T> fold(const Variable<T>&, const Dims&, const Dims&, UnfoldOptions);

XGRAD_INSTANTIATE(float)
XGRAD_INSTANTIATE(double)

}  // namespace xgrad
