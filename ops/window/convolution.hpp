#pragma once

#include "../../base/detail/by_name.hpp"
#include "../../base/dims.hpp"
#include "../../graph/op.hpp"
#include "../../graph/variable.hpp"

// Convolutions along the last axes: of x (N, C, L) or (C, L), and of x (N, C, H, W) or (C, H, W). Options
// with one number for each axis take one for all, too. The windows of a block of rows are read at once, so
// that they need little memory. Errors: ShapeError for shapes that do not fit, ValueError for options out of
// range.

namespace xgrad {

/// How many zeros are put at both ends of each axis: `1`, `{1, 2}`, or by name.
class ConvPadding {
 public:
  enum Named {
    valid,  ///< none
    same,   ///< as many as keep the lengths, of an odd number one more at the end; needs stride 1
  };

  ConvPadding(Named named) : lengths_(0), same_(named == same) {}
  ConvPadding(Dims lengths) : lengths_(std::move(lengths)) {}
  template <detail::Integer... I>
  requires(sizeof...(I) > 0) ConvPadding(I... lengths) : lengths_(lengths...) {}

  const Dims& lengths() const { return lengths_; }
  bool is_same() const { return same_; }

 private:
  Dims lengths_;
  bool same_ = false;
};

struct ConvOptions {
  detail::ByName by_name = {};
  Dims stride = 1;          ///< from a window to the next
  ConvPadding padding = 0;  ///< zeros at both ends
  Dims dilation = 1;        ///< from an element of a window to the next
  Int groups = 1;           ///< parts of the channels, each of which is convolved with its own filters
};

/// y[n, o, t] = bias[o] + sum over c and k of weight[o, c, k] x[n, g C / groups + c, t stride + k dilation -
/// padding], where g is the group of o and x is 0 beyond its ends: cross-correlation. x (N, C, L) or (C, L),
/// weight (O, C / groups, K), bias (O) or undefined, y (N, O, T) or (O, T) with
/// T = floor((L + 2 padding - dilation (K - 1) - 1) / stride) + 1.
///
/// dx is a transposed convolution of dy, dweight the same sum over n and t, dbias = dy summed over them.
/// https://pytorch.org/docs/stable/generated/torch.nn.functional.conv1d.html
template <class T>
Variable<T> conv1d(const Variable<T>& x, const Variable<T>& weight, const Variable<T>& bias = {},
                   ConvOptions options = {});

/// The same along two axes: x (N, C, H, W) or (C, H, W), weight (O, C / groups, KH, KW).
/// https://pytorch.org/docs/stable/generated/torch.nn.functional.conv2d.html
template <class T>
Variable<T> conv2d(const Variable<T>& x, const Variable<T>& weight, const Variable<T>& bias = {},
                   ConvOptions options = {});

struct ConvTransposeOptions {
  detail::ByName by_name = {};
  Dims stride = 1;
  Dims padding = 0;
  Dims output_padding = 0;  ///< how much longer y is, less than stride or dilation
  Int groups = 1;
  Dims dilation = 1;
};

/// The gradient of a convolution as an op: x (N, C, L) or (C, L), weight (C, O / groups, K), bias (O) or
/// undefined, y (N, O, T) or (O, T) with T = (L - 1) stride - 2 padding + dilation (K - 1) + output_padding +
/// 1 and y[n, o, t stride + k dilation - padding] += weight[c, o, k] x[n, c, t].
///
/// dx is a convolution of dy.
/// https://pytorch.org/docs/stable/generated/torch.nn.functional.conv_transpose1d.html
template <class T>
Variable<T> conv_transpose1d(const Variable<T>& x, const Variable<T>& weight, const Variable<T>& bias = {},
                             ConvTransposeOptions options = {});

/// The same along two axes: x (N, C, H, W) or (C, H, W), weight (C, O / groups, KH, KW).
/// https://pytorch.org/docs/stable/generated/torch.nn.functional.conv_transpose2d.html
template <class T>
Variable<T> conv_transpose2d(const Variable<T>& x, const Variable<T>& weight, const Variable<T>& bias = {},
                             ConvTransposeOptions options = {});

namespace ops {

// the padding of conv1d and conv2d is that before the first element
inline constexpr Op conv1d("conv1d", {"x", "weight", "bias"}, {"stride", "padding", "dilation", "groups"});
inline constexpr Op conv2d("conv2d", {"x", "weight", "bias"}, {"stride", "padding", "dilation", "groups"});
inline constexpr Op conv_transpose1d("conv_transpose1d", {"x", "weight", "bias"},
                                     {"stride", "padding", "output_padding", "groups", "dilation"});
inline constexpr Op conv_transpose2d("conv_transpose2d", {"x", "weight", "bias"},
                                     {"stride", "padding", "output_padding", "groups", "dilation"});

}  // namespace ops
}  // namespace xgrad
