#pragma once

#include <optional>

#include "../../base/detail/by_name.hpp"
#include "../../base/dims.hpp"
#include "../../graph/op.hpp"
#include "../../graph/variable.hpp"
#include "../reduce/sorting.hpp"

// Maxima and means of windows on the last axes: of x (N, C, L) or (C, L), and of x (N, C, H, W) or (C, H, W).
// Arguments with one number for each axis take one for all, too. Errors: ShapeError for shapes that do not
// fit, ValueError for options out of range.

namespace xgrad {

struct MaxPoolOptions {
  detail::ByName by_name = {};
  std::optional<Dims> stride = {};  ///< from a window to the next; without it the kernel's size
  Dims padding = 0;                 ///< elements beyond both ends, at most half of a window: none is chosen
  Dims dilation = 1;                ///< from an element of a window to the next
  bool ceil_mode = false;           ///< a last window may reach beyond the end, but begins before it
};

/// The largest element of each window, nan if any is nan, and its index among those of its channel: y (N, C,
/// T) or (C, T) with T = floor((L + 2 padding - dilation (kernel_size - 1) - 1) / stride) + 1, or rounded up
/// in ceil_mode. dx = dy at the largest element, the first of equal ones.
/// https://pytorch.org/docs/stable/generated/torch.nn.functional.max_pool1d.html
template <class T>
Ranked<T> max_pool1d(const Variable<T>& x, Int kernel_size, MaxPoolOptions options = {});

/// The same along two axes; indices are those of the rows one behind the other.
/// https://pytorch.org/docs/stable/generated/torch.nn.functional.max_pool2d.html
template <class T>
Ranked<T> max_pool2d(const Variable<T>& x, const Dims& kernel_size, MaxPoolOptions options = {});

struct AvgPoolOptions {
  detail::ByName by_name = {};
  std::optional<Dims> stride = {};           ///< from a window to the next; without it the kernel's size
  Dims padding = 0;                          ///< zeros at both ends, at most half of a window
  bool ceil_mode = false;                    ///< a last window may reach beyond the end, but begins before it
  bool count_include_pad = true;             ///< means are over the zeros, too
  std::optional<Int> divisor_override = {};  ///< of the sums, in place of the number of elements
};

/// The mean of each window, as in max_pool1d. dx = dy / n for each of its n elements.
/// https://pytorch.org/docs/stable/generated/torch.nn.functional.avg_pool1d.html
template <class T>
Variable<T> avg_pool1d(const Variable<T>& x, Int kernel_size, AvgPoolOptions options = {});

/// The same along two axes.
/// https://pytorch.org/docs/stable/generated/torch.nn.functional.avg_pool2d.html
template <class T>
Variable<T> avg_pool2d(const Variable<T>& x, const Dims& kernel_size, AvgPoolOptions options = {});

/// The means of output_size windows: window i of n on L elements is [floor(i L / n), ceil((i + 1) L / n)).
/// https://pytorch.org/docs/stable/generated/torch.nn.functional.adaptive_avg_pool1d.html
template <class T>
Variable<T> adaptive_avg_pool1d(const Variable<T>& x, Int output_size);

/// The same along two axes.
/// https://pytorch.org/docs/stable/generated/torch.nn.functional.adaptive_avg_pool2d.html
template <class T>
Variable<T> adaptive_avg_pool2d(const Variable<T>& x, const Dims& output_size);

/// The largest elements of these windows and their indices, as of max_pool1d.
/// https://pytorch.org/docs/stable/generated/torch.nn.functional.adaptive_max_pool1d.html
template <class T>
Ranked<T> adaptive_max_pool1d(const Variable<T>& x, Int output_size);

/// The same along two axes.
/// https://pytorch.org/docs/stable/generated/torch.nn.functional.adaptive_max_pool2d.html
template <class T>
Ranked<T> adaptive_max_pool2d(const Variable<T>& x, const Dims& output_size);

namespace ops {

inline constexpr Op max_pool1d("max_pool1d", {"x"},
                               {"kernel_size", "stride", "padding", "dilation", "ceil_mode"});
inline constexpr Op max_pool2d("max_pool2d", {"x"},
                               {"kernel_size", "stride", "padding", "dilation", "ceil_mode"});
inline constexpr Op adaptive_max_pool1d("adaptive_max_pool1d", {"x"}, {"output_size"});
inline constexpr Op adaptive_max_pool2d("adaptive_max_pool2d", {"x"}, {"output_size"});
inline constexpr Op avg_pool1d("avg_pool1d", {"x"},
                               {"kernel_size", "stride", "padding", "ceil_mode", "count_include_pad",
                                "divisor_override"});
inline constexpr Op avg_pool2d("avg_pool2d", {"x"},
                               {"kernel_size", "stride", "padding", "ceil_mode", "count_include_pad",
                                "divisor_override"});
inline constexpr Op adaptive_avg_pool1d("adaptive_avg_pool1d", {"x"}, {"output_size"});
inline constexpr Op adaptive_avg_pool2d("adaptive_avg_pool2d", {"x"}, {"output_size"});

}  // namespace ops
}  // namespace xgrad
