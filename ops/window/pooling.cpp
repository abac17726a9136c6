#include "pooling.hpp"

#include <algorithm>

#include "../../graph/record.hpp"
#include "../../kernels/window/max_pool.hpp"
#include "../index/scatter.hpp"
#include "../shape/shapes.hpp"
#include "detail/axes.hpp"
#include "detail/separable.hpp"

namespace xgrad {
namespace {

using detail::Images, detail::PerAxis, kernels::SparseMatrix, kernels::Windows;
using kernels::PoolAxis, kernels::WindowAxis;

/// With ceil_mode, a last window may reach beyond the padding if it begins before that; it is the first one
/// if x is shorter than a window by less than the stride.
WindowAxis pooled_axis(std::size_t length, std::size_t kernel, std::size_t stride, std::size_t padding,
                       std::size_t dilation, bool ceil_mode) {
  WindowAxis axis = detail::window_axis(length, kernel, stride, padding, 2 * padding, dilation);
  const std::size_t next = axis.count * stride, end = length + 2 * padding;
  const std::size_t next_end = next + (kernel - 1) * dilation + 1;
  if (ceil_mode && next_end > end && next_end < end + stride && next < length + padding) ++axis.count;
  return axis;
}

/// The elements of windows that are no padding; none if a window is without, which only dilation can do.
std::optional<PoolAxis> without_padding(const WindowAxis& axis) {
  PoolAxis made{axis.length, axis.dilation};
  for (std::size_t i = 0; i < axis.count; ++i) {
    const auto [first, last] = axis.elements(i);
    if (first >= last) return {};
    made.windows.push_back({axis.place(i, first), last - first});
  }
  return made;
}

/// `count` windows that share an axis out.
PoolAxis adaptive_axis(std::size_t length, std::size_t count) {
  PoolAxis made{length};
  for (std::size_t i = 0; i < count; ++i) {
    const std::size_t first = i * length / count, last = kernels::ceil_div((i + 1) * length, count);
    made.windows.push_back({first, last - first});
  }
  return made;
}

/// Options of maxima and means alike.
struct Pooling {
  const Dims& kernel_size;
  const std::optional<Dims>& stride;
  const Dims &padding, dilation;
  bool ceil_mode;
};

Windows pooling_windows(const char* op, const Shape& x, const Images& of_x, std::size_t axes,
                        const Pooling& pooling) {
  const PerAxis kernel = detail::per_axis(op, "kernel_size", pooling.kernel_size, axes, 1, 1);
  const PerAxis stride =
      pooling.stride ? detail::per_axis(op, "stride", *pooling.stride, axes, 1, 1) : kernel;
  const PerAxis padding = detail::per_axis(op, "padding", pooling.padding, axes, 0, 0);
  const PerAxis dilation = detail::per_axis(op, "dilation", pooling.dilation, axes, 1, 1);
  const auto is_half = [](std::size_t padding, std::size_t kernel, std::size_t dilation) {
    return 2 * padding <= (kernel - 1) * dilation + 1;
  };
  if (!is_half(padding.rows, kernel.rows, dilation.rows) ||
      !is_half(padding.cols, kernel.cols, dilation.cols)) {
    detail::fail<ValueError>(op, ": padding must be at most half of a window, got padding ",
                             to_string(pooling.padding), ", kernel_size ", to_string(pooling.kernel_size),
                             " and dilation ", to_string(pooling.dilation));
  }
  const Windows windows{
      pooled_axis(of_x.rows, kernel.rows, stride.rows, padding.rows, dilation.rows, pooling.ceil_mode),
      pooled_axis(of_x.cols, kernel.cols, stride.cols, padding.cols, dilation.cols, pooling.ceil_mode)};
  if (of_x.rows == 0 || of_x.cols == 0 || windows.count() == 0) {
    detail::fail<ShapeError>(op, ": a window must not be longer than x with its padding, got x ", x,
                             ", kernel_size ", to_string(pooling.kernel_size), " and dilation ",
                             to_string(pooling.dilation));
  }
  return windows;
}

/// The numbers of windows that share x out.
PerAxis adaptive_size(const char* op, std::size_t axes, const Shape& x, const Images& of_x,
                      const Dims& output_size) {
  const PerAxis size = detail::per_axis(op, "output_size", output_size, axes, 0, 1);
  if (of_x.rows == 0 || of_x.cols == 0)
    detail::fail<ShapeError>(op, ": there are no elements in the windows of x ", x);
  return size;
}

/// The largest element of each window, and where it is.
template <class T, class... A>
Ranked<T> maxima(StaticOp<1, sizeof...(A)> op, const Variable<T>& x, const Images& of_x, const PoolAxis& rows,
                 const PoolAxis& cols, std::size_t axes, const Attributes<A...>& attributes) {
  const std::size_t planes = of_x.planes(), image = of_x.rows * of_x.cols;
  const Shape shape =
      detail::image_shape(of_x, of_x.channels, rows.windows.size(), cols.windows.size(), axes);
  Variable<T> values = detail::empty<T>(shape, op.info().name);
  Ids ids = Ids::from_shape(shape);
  kernels::max_pool(detail::data(x), planes, rows, cols, detail::data(values), ids.data());
  values = record<T>(
      op, std::move(values), Inputs(x), attributes, Saved(ids),
      [planes, image](Variable<T> dy, Needs needs, Ids ids) -> Grads<T, 1> {
        const std::size_t windows = planes == 0 ? 0 : ids.size() / planes;
        ids.reshape(Shape{planes, windows});
        const Variable<T> none(Array<T>(Shape{planes, image}, T{0}));
        return {reshape(scatter_add(none, 1, ids, reshape(dy, Shape{planes, windows})), needs.shape(0))};
      });
  return {std::move(values), std::move(ids)};
}

template <class T>
Ranked<T> max_pool(StaticOp<1, 5> described, std::size_t axes, const Variable<T>& x, const Dims& kernel_size,
                   const MaxPoolOptions& options) {
  const char* const op = described.info().name;
  const Images of_x = detail::images(op, x.shape(), axes);
  const Windows windows =
      pooling_windows(op, x.shape(), of_x, axes,
                      {kernel_size, options.stride, options.padding, options.dilation, options.ceil_mode});
  const auto rows = without_padding(windows.rows), cols = without_padding(windows.cols);
  if (!rows || !cols) {
    detail::fail<ValueError>(op, ": each window must have an element of x, got x ", x.shape(),
                             ", kernel_size ", to_string(kernel_size), ", padding ",
                             to_string(options.padding), " and dilation ", to_string(options.dilation));
  }
  return maxima(described, x, of_x, *rows, *cols, axes,
                Attributes(kernel_size, options.stride ? *options.stride : kernel_size, options.padding,
                           options.dilation, options.ceil_mode));
}

template <class T>
Ranked<T> adaptive_max_pool(StaticOp<1, 1> op, std::size_t axes, const Variable<T>& x,
                            const Dims& output_size) {
  const Images of_x = detail::images(op.info().name, x.shape(), axes);
  const PerAxis size = adaptive_size(op.info().name, axes, x.shape(), of_x, output_size);
  return maxima(op, x, of_x, adaptive_axis(of_x.rows, size.rows), adaptive_axis(of_x.cols, size.cols), axes,
                Attributes(output_size));
}

/// The means of windows along an axis, or their sums divided by the divisor.
template <class T>
SparseMatrix<T> mean_matrix(const WindowAxis& axis, bool count_include_pad, std::optional<T> divisor) {
  SparseMatrix<T> matrix;
  matrix.cols = axis.length;
  for (std::size_t i = 0; i < axis.count; ++i) {
    const std::size_t start = i * axis.stride;
    const std::size_t end = std::min(start + axis.kernel, axis.length + 2 * axis.padding);
    const std::size_t first = std::max(start, axis.padding), last = std::min(end, axis.length + axis.padding);
    const std::size_t count = count_include_pad ? end - start : last - first;
    const T weight = 1 / divisor.value_or(static_cast<T>(count));
    for (std::size_t place = first; place < last; ++place) matrix.add(place - axis.padding, weight);
    matrix.end_row();
  }
  return matrix;
}

/// The means of `count` windows that share an axis out.
template <class T>
SparseMatrix<T> adaptive_matrix(std::size_t length, std::size_t count) {
  SparseMatrix<T> matrix;
  matrix.cols = length;
  for (const auto& [first, size] : adaptive_axis(length, count).windows) {
    for (std::size_t k = 0; k < size; ++k) matrix.add(first + k, 1 / static_cast<T>(size));
    matrix.end_row();
  }
  return matrix;
}

template <class T>
Variable<T> avg_pool(StaticOp<1, 6> op, std::size_t axes, const Variable<T>& x, const Dims& kernel_size,
                     const AvgPoolOptions& options) {
  const Images of_x = detail::images(op.info().name, x.shape(), axes);
  const Windows windows =
      pooling_windows(op.info().name, x.shape(), of_x, axes,
                      {kernel_size, options.stride, options.padding, 1, options.ceil_mode});
  std::optional<T> rows_divisor, cols_divisor;
  std::optional<std::ptrdiff_t> divisor;
  if (options.divisor_override) {
    divisor = *options.divisor_override;
    if (divisor == 0) detail::fail<ValueError>(op.info().name, ": divisor_override must not be 0");
    rows_divisor = T(1);
    cols_divisor = static_cast<T>(*divisor);
  }
  return detail::separable<T>(
      op, x,
      detail::axis_matrices(axes, mean_matrix<T>(windows.rows, options.count_include_pad, rows_divisor),
                            mean_matrix<T>(windows.cols, options.count_include_pad, cols_divisor)),
      Attributes(kernel_size, options.stride ? *options.stride : kernel_size, options.padding,
                 options.ceil_mode, options.count_include_pad, divisor));
}

template <class T>
Variable<T> adaptive_avg_pool(StaticOp<1, 1> op, std::size_t axes, const Variable<T>& x,
                              const Dims& output_size) {
  const Images of_x = detail::images(op.info().name, x.shape(), axes);
  const PerAxis size = adaptive_size(op.info().name, axes, x.shape(), of_x, output_size);
  return detail::separable<T>(op, x,
                              detail::axis_matrices(axes, adaptive_matrix<T>(of_x.rows, size.rows),
                                                    adaptive_matrix<T>(of_x.cols, size.cols)),
                              Attributes(output_size));
}

}  // namespace

template <class T>
Ranked<T> max_pool1d(const Variable<T>& x, Int kernel_size, MaxPoolOptions options) {
  return max_pool(ops::max_pool1d, 1, x, kernel_size, options);
}

template <class T>
Ranked<T> max_pool2d(const Variable<T>& x, const Dims& kernel_size, MaxPoolOptions options) {
  return max_pool(ops::max_pool2d, 2, x, kernel_size, options);
}

template <class T>
Variable<T> avg_pool1d(const Variable<T>& x, Int kernel_size, AvgPoolOptions options) {
  return avg_pool(ops::avg_pool1d, 1, x, kernel_size, options);
}

template <class T>
Variable<T> avg_pool2d(const Variable<T>& x, const Dims& kernel_size, AvgPoolOptions options) {
  return avg_pool(ops::avg_pool2d, 2, x, kernel_size, options);
}

template <class T>
Variable<T> adaptive_avg_pool1d(const Variable<T>& x, Int output_size) {
  return adaptive_avg_pool(ops::adaptive_avg_pool1d, 1, x, output_size);
}

template <class T>
Variable<T> adaptive_avg_pool2d(const Variable<T>& x, const Dims& output_size) {
  return adaptive_avg_pool(ops::adaptive_avg_pool2d, 2, x, output_size);
}

template <class T>
Ranked<T> adaptive_max_pool1d(const Variable<T>& x, Int output_size) {
  return adaptive_max_pool(ops::adaptive_max_pool1d, 1, x, output_size);
}

template <class T>
Ranked<T> adaptive_max_pool2d(const Variable<T>& x, const Dims& output_size) {
  return adaptive_max_pool(ops::adaptive_max_pool2d, 2, x, output_size);
}

#define XGRAD_INSTANTIATE(T)                                                        \
  template Ranked<T> max_pool1d(const Variable<T>&, Int, MaxPoolOptions);           \
  template Ranked<T> max_pool2d(const Variable<T>&, const Dims&, MaxPoolOptions);   \
  template Variable<T> avg_pool1d(const Variable<T>&, Int, AvgPoolOptions);         \
  template Variable<T> avg_pool2d(const Variable<T>&, const Dims&, AvgPoolOptions); \
  template Variable<T> adaptive_avg_pool1d(const Variable<T>&, Int);                \
  template Variable<T> adaptive_avg_pool2d(const Variable<T>&, const Dims&);        \
  template Ranked<T> adaptive_max_pool1d(const Variable<T>&, Int);                  \
  template Ranked<T> adaptive_max_pool2d(const Variable<T>&, const Dims&);

XGRAD_INSTANTIATE(float)
XGRAD_INSTANTIATE(double)

}  // namespace xgrad
