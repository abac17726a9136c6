#include "convolution.hpp"

#include "../../graph/record.hpp"
#include "../../kernels/pointwise/binary.hpp"
#include "../../kernels/window/convolution.hpp"
#include "../reduce/reductions.hpp"
#include "detail/axes.hpp"

namespace xgrad {
namespace ops {

constexpr Op conv_input_grad("conv_input_grad", {"dy", "weight", "bias"});
constexpr Op conv_weight_grad("conv_weight_grad", {"x", "dy"});

}  // namespace ops

namespace {

using detail::Images, detail::PerAxis, kernels::WindowAxis;

/// A convolution from images to maps: two of the three arrays give the third.
struct ConvolutionCall {
  kernels::ConvolutionSizes sizes;
  Shape images, weight, maps;
};

/// y (batch, channels, size) += bias, by channel.
template <class T>
void add_bias(const Variable<T>& bias, std::size_t batch, std::size_t size, T* y) {
  const T* const shifts = detail::data(bias);
  const std::size_t channels = bias.size();
  kernels::parallel_pieces(batch * channels, size, [&](std::size_t begin, std::size_t end) {
    for (; begin < end; ++begin) {
      const T shift = shifts[begin % channels];
      for (std::size_t i = begin * size; i < (begin + 1) * size; ++i) y[i] += shift;
    }
  });
}

/// dy summed over all axes but that of the channels, for a weight with that many axes.
template <class T>
Variable<T> bias_grad(const Variable<T>& dy, std::size_t weight_rank) {
  const std::size_t channel_axis = dy.dimension() + 1 - weight_rank;
  Shape others;
  for (std::size_t axis = 0; axis < dy.dimension(); ++axis)
    if (axis != channel_axis) others.push_back(axis);
  return sum(dy, Dims(others));
}

template <bool to_images, class T, class... A>
Variable<T> convolved(StaticOp<3, sizeof...(A)> op, const ConvolutionCall& call, const Variable<T>& x,
                      const Variable<T>& weight, const Variable<T>& bias, const Attributes<A...>& attributes);

/// The weight of which the convolution of `images` has the gradient `maps`.
template <class T>
Variable<T> to_weight(const ConvolutionCall& call, const Variable<T>& images, const Variable<T>& maps) {
  Variable<T> y = detail::empty<T>(call.weight);
  Variable<T> scratch = detail::empty<T>(Shape{kernels::convolution_weight_scratch<T>(call.sizes)});
  kernels::convolution_weight<T>(call.sizes, detail::data(images), detail::data(maps), detail::data(y),
                                 detail::data(scratch));
  return record<T>(
      ops::conv_weight_grad, std::move(y), Inputs(images, maps),
      Saved(if_requires_grad(maps, images), if_requires_grad(images, maps)),
      [call](Variable<T> d, Needs needs, Variable<T> images, Variable<T> maps) {
        Grads<T, 2> grads;
        if (needs[0])
          grads[0] = convolved<true>(ops::conv_input_grad, call, maps, d, Variable<T>(), Attributes());
        if (needs[1])
          grads[1] = convolved<false>(ops::conv_input_grad, call, images, d, Variable<T>(), Attributes());
        return grads;
      });
}

/// The maps of the images x, or the images of the maps x.
template <bool to_images, class T, class... A>
Variable<T> convolved(StaticOp<3, sizeof...(A)> op, const ConvolutionCall& call, const Variable<T>& x,
                      const Variable<T>& weight, const Variable<T>& bias,
                      const Attributes<A...>& attributes) {
  Variable<T> y = detail::empty<T>(to_images ? call.images : call.maps, op.info().name);
  const auto product = to_images ? kernels::transposed_convolution<T> : kernels::convolution<T>;
  product(call.sizes, detail::data(x), detail::data(weight), detail::data(y));
  const kernels::Windows& windows = call.sizes.windows;
  if (bias.defined()) {
    add_bias(bias, call.sizes.batch, to_images ? windows.image_size() : windows.count(), detail::data(y));
  }
  return record<T>(op, std::move(y), Inputs(x, weight, bias), attributes,
                   Saved(if_requires_grad(weight, x), if_requires_grad(x, weight)),
                   [call](Variable<T> dy, Needs needs, Variable<T> x, Variable<T> weight) {
                     Grads<T, 3> grads;
                     if (needs[0]) {
                       grads[0] = convolved<!to_images>(ops::conv_input_grad, call, dy, weight, Variable<T>(),
                                                        Attributes());
                     }
                     if (needs[1]) grads[1] = to_images ? to_weight(call, dy, x) : to_weight(call, x, dy);
                     if (needs[2]) grads[2] = bias_grad(dy, call.weight.size());
                     return grads;
                   });
}

template <class T>
void check_weight(const char* op, const Variable<T>& weight, std::size_t axes, Int groups,
                  const char* names) {
  if (weight.dimension() != axes + 2) {
    detail::fail<ShapeError>(op, ": weight must have the axes ", names, axes == 1 ? ", K)" : ", KH, KW)",
                             ", got ", weight.shape());
  }
  if (groups < 1 || weight.shape(0) % static_cast<std::size_t>(groups) != 0) {
    detail::fail<ValueError>(op, ": groups must be at least 1 and divide the first axis of weight ",
                             weight.shape(), ", got ", groups);
  }
  for (std::size_t axis = 2; axis < weight.dimension(); ++axis) {
    if (weight.shape(axis) == 0)
      detail::fail<ShapeError>(op, ": a kernel must have elements, got weight ", weight.shape());
  }
}

template <class T>
void check_channels(const char* op, const Variable<T>& x, std::size_t channels, std::size_t wanted,
                    const Variable<T>& weight, std::size_t groups) {
  if (channels == wanted) return;
  detail::fail<ShapeError>(op, ": x must have ", wanted, " channels to fit weight ", weight.shape(), " with ",
                           groups, groups == 1 ? " group" : " groups", ", got x ", x.shape());
}

template <class T>
void check_bias(const char* op, const Variable<T>& bias, std::size_t channels, const Variable<T>& weight) {
  if (bias.defined() && !same_shape(bias.shape(), {channels})) {
    detail::fail<ShapeError>(op, ": bias must have shape (", channels, ") to fit weight ", weight.shape(),
                             ", got ", bias.shape());
  }
}

/// What a window spans beyond its first element.
std::size_t reach(std::size_t kernel, std::size_t dilation) { return (kernel - 1) * dilation; }

template <class T>
Variable<T> convolution(StaticOp<3, 4> op, std::size_t axes, const Variable<T>& x, const Variable<T>& weight,
                        const Variable<T>& bias, const ConvOptions& options) {
  const char* const name = op.info().name;
  const Images of_x = detail::images(name, x.shape(), axes);
  check_weight(name, weight, axes, options.groups, "(O, C / groups");
  const auto groups = static_cast<std::size_t>(options.groups);
  check_channels(name, x, of_x.channels, weight.shape(1) * groups, weight, groups);
  check_bias(name, bias, weight.shape(0), weight);
  const PerAxis stride = detail::per_axis(name, "stride", options.stride, axes, 1, 1);
  const PerAxis dilation = detail::per_axis(name, "dilation", options.dilation, axes, 1, 1);
  PerAxis padding = detail::per_axis(name, "padding", options.padding.lengths(), axes, 0, 0);
  PerAxis both{2 * padding.rows, 2 * padding.cols};
  const PerAxis kernel{axes == 1 ? 1 : weight.shape(2), weight.shape(axes + 1)};
  if (options.padding.is_same()) {
    if (stride.rows != 1 || stride.cols != 1) {
      detail::fail<ValueError>(name, ": padding that keeps the lengths needs stride 1, got ",
                               to_string(options.stride));
    }
    both = {reach(kernel.rows, dilation.rows), reach(kernel.cols, dilation.cols)};
    padding = {both.rows / 2, both.cols / 2};
  }
  const kernels::Windows windows{
      detail::window_axis(of_x.rows, kernel.rows, stride.rows, padding.rows, both.rows, dilation.rows),
      detail::window_axis(of_x.cols, kernel.cols, stride.cols, padding.cols, both.cols, dilation.cols)};
  if (windows.count() == 0) {
    detail::fail<ShapeError>(name, ": the kernel must not be longer than x with its padding, got x ",
                             x.shape(), ", weight ", weight.shape(), " and dilation ",
                             to_string(options.dilation));
  }
  const std::size_t out = weight.shape(0);
  const ConvolutionCall call{{of_x.batch, groups, weight.shape(1), out / groups, windows},
                             x.shape(),
                             weight.shape(),
                             detail::image_shape(of_x, out, windows.rows.count, windows.cols.count, axes)};
  const Dims before = axes == 1 ? Dims(padding.cols) : Dims(padding.rows, padding.cols);
  return convolved<false>(op, call, x, weight, bias,
                          Attributes(options.stride, before, options.dilation, groups));
}

/// The axis of y, of which x has the windows.
WindowAxis transposed_axis(const char* op, std::size_t count, std::size_t kernel, std::size_t stride,
                           std::size_t padding, std::size_t output_padding, std::size_t dilation) {
  if (output_padding >= std::max(stride, dilation)) {
    detail::fail<ValueError>(op, ": output_padding must be less than stride or dilation, got ",
                             output_padding, ", stride ", stride, " and dilation ", dilation);
  }
  const std::size_t length =
      count == 0 ? 0 : (count - 1) * stride + reach(kernel, dilation) + output_padding + 1;
  if (length <= 2 * padding) {
    detail::fail<ShapeError>(op, ": y must have elements, got padding ", padding, " for a length of ", length,
                             " without it");
  }
  return {length - 2 * padding, count, kernel, stride, padding, dilation};
}

template <class T>
Variable<T> transposed(StaticOp<3, 5> op, std::size_t axes, const Variable<T>& x, const Variable<T>& weight,
                       const Variable<T>& bias, const ConvTransposeOptions& options) {
  const char* const name = op.info().name;
  const Images of_x = detail::images(name, x.shape(), axes);
  check_weight(name, weight, axes, options.groups, "(C, O / groups");
  const auto groups = static_cast<std::size_t>(options.groups);
  check_channels(name, x, of_x.channels, weight.shape(0), weight, groups);
  const std::size_t out = weight.shape(1) * groups;
  check_bias(name, bias, out, weight);
  const PerAxis stride = detail::per_axis(name, "stride", options.stride, axes, 1, 1);
  const PerAxis dilation = detail::per_axis(name, "dilation", options.dilation, axes, 1, 1);
  const PerAxis padding = detail::per_axis(name, "padding", options.padding, axes, 0, 0);
  const PerAxis longer = detail::per_axis(name, "output_padding", options.output_padding, axes, 0, 0);
  const kernels::Windows windows{transposed_axis(name, of_x.rows, axes == 1 ? 1 : weight.shape(2),
                                                 stride.rows, padding.rows, longer.rows, dilation.rows),
                                 transposed_axis(name, of_x.cols, weight.shape(axes + 1), stride.cols,
                                                 padding.cols, longer.cols, dilation.cols)};
  const ConvolutionCall call{{of_x.batch, groups, weight.shape(1), weight.shape(0) / groups, windows},
                             detail::image_shape(of_x, out, windows.rows.length, windows.cols.length, axes),
                             weight.shape(),
                             x.shape()};
  return convolved<true>(
      op, call, x, weight, bias,
      Attributes(options.stride, options.padding, options.output_padding, groups, options.dilation));
}

}  // namespace

template <class T>
Variable<T> conv1d(const Variable<T>& x, const Variable<T>& weight, const Variable<T>& bias,
                   ConvOptions options) {
  return convolution(ops::conv1d, 1, x, weight, bias, options);
}

template <class T>
Variable<T> conv2d(const Variable<T>& x, const Variable<T>& weight, const Variable<T>& bias,
                   ConvOptions options) {
  return convolution(ops::conv2d, 2, x, weight, bias, options);
}

template <class T>
Variable<T> conv_transpose1d(const Variable<T>& x, const Variable<T>& weight, const Variable<T>& bias,
                             ConvTransposeOptions options) {
  return transposed(ops::conv_transpose1d, 1, x, weight, bias, options);
}

template <class T>
Variable<T> conv_transpose2d(const Variable<T>& x, const Variable<T>& weight, const Variable<T>& bias,
                             ConvTransposeOptions options) {
  return transposed(ops::conv_transpose2d, 2, x, weight, bias, options);
}

#define XGRAD_INSTANTIATE(T)                                                                            \
  template Variable<T> conv1d(const Variable<T>&, const Variable<T>&, const Variable<T>&, ConvOptions); \
  template Variable<T> conv2d(const Variable<T>&, const Variable<T>&, const Variable<T>&, ConvOptions); \
  template Variable<T> conv_transpose1d(const Variable<T>&, const Variable<T>&, const Variable<T>&,     \
                                        ConvTransposeOptions);                                          \
  template Variable<T> conv_transpose2d(const Variable<T>&, const Variable<T>&, const Variable<T>&,     \
                                        ConvTransposeOptions);

XGRAD_INSTANTIATE(float)
XGRAD_INSTANTIATE(double)

}  // namespace xgrad
