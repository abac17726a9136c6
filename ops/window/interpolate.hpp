#pragma once

#include "../../base/detail/by_name.hpp"
#include "../../base/dims.hpp"
#include "../../graph/op.hpp"
#include "../../graph/variable.hpp"

namespace xgrad {

/// How elements between those of x are computed.
enum class InterpolateMode {
  nearest,   ///< the element before
  linear,    ///< from 2 elements, along one axis
  bilinear,  ///< the same along two axes
  bicubic,   ///< from 4 elements by cubic convolution with a = -0.75 (Keys 1981), along two axes
};

struct InterpolateOptions {
  detail::ByName by_name = {};
  InterpolateMode mode = InterpolateMode::nearest;
  bool align_corners = false;  ///< the centres of the first and last elements agree, not their outer edges
};

/// x (N, C, ...) with its last axes, 1 or 2, resized to `size`, one number for all or one for each. Element i
/// of n is where x has the element (i + 1/2) L / n - 1/2, with align_corners i (L - 1) / (n - 1), nearest
/// floor(i (L / n)), and the first or last one beyond the ends. Numbers are rounded to T, as in PyTorch: of
/// L = 39 and n = 33 element 11 is nearest to element 12 in float and to element 13 in double. An element
/// whose weight is 0 is not read. dx = dy times the same weights.
///
/// Throws ShapeError for an x that does not fit the mode or has no elements along an axis, ValueError for a
/// size below 1 and for align_corners with nearest.
/// https://pytorch.org/docs/stable/generated/torch.nn.functional.interpolate.html
template <class T>
Variable<T> interpolate(const Variable<T>& x, const Dims& size, InterpolateOptions options = {});

namespace ops {

inline constexpr Op interpolate("interpolate", {"x"}, {"size", "mode", "align_corners"});

}  // namespace ops
}  // namespace xgrad
