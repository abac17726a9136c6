#pragma once

#include "../../base/detail/by_name.hpp"
#include "../../base/dims.hpp"
#include "../../graph/op.hpp"
#include "../../graph/variable.hpp"

// The windows of images as columns, and back. Arguments have one number for both axes, or two.

namespace xgrad {

struct UnfoldOptions {
  detail::ByName by_name = {};
  Dims dilation = 1;  ///< from an element of a window to the next
  Dims padding = 0;   ///< zeros at both ends
  Dims stride = 1;    ///< from a window to the next
};

/// y[n, (c KH + i) KW + j, t] = element (i, j) of window t of x[n, c]: x (N, C, H, W) or (C, H, W), y (N, C
/// KH KW, windows) or without N. dx = fold(dy). Throws ShapeError for shapes that do not fit, ValueError for
/// options out of range. https://pytorch.org/docs/stable/generated/torch.nn.functional.unfold.html
template <class T>
Variable<T> unfold(const Variable<T>& x, const Dims& kernel_size, UnfoldOptions options = {});

/// y (N, C, H, W) with (H, W) = output_size = the sums of the elements of x (N, C KH KW, windows) where
/// unfold would have taken them from; also without N. dx = unfold(dy). Errors as of unfold.
/// https://pytorch.org/docs/stable/generated/torch.nn.functional.fold.html
template <class T>
Variable<T> fold(const Variable<T>& x, const Dims& output_size, const Dims& kernel_size,
                 UnfoldOptions options = {});

namespace ops {

inline constexpr Op unfold("unfold", {"x"}, {"kernel_size", "dilation", "padding", "stride"});
inline constexpr Op fold("fold", {"x"}, {"output_size", "kernel_size", "dilation", "padding", "stride"});

}  // namespace ops
}  // namespace xgrad
