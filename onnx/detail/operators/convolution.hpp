#pragma once

#include <algorithm>
#include <cstdint>
#include <optional>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "../../../base/detail/text/json_text.hpp"
#include "../../../ops/shape/rearrange.hpp"
#include "../../../ops/window/convolution.hpp"
#include "../arguments.hpp"

namespace xgrad::onnx::detail {

/// The attributes that operators on windows share: strides, dilations, pads and auto_pad; pools have
/// ceil_mode, too.
class Windows {
 public:
  static constexpr std::int64_t largest = std::int64_t{1} << 30;  // of strides and the like

  explicit Windows(NodeAttributes& attributes, bool is_of_pool = false)
      : ceil_mode(is_of_pool && attributes.integer("ceil_mode", 0) != 0),
        kernel_(attributes.integers("kernel_shape").value_or(std::vector<std::int64_t>())),
        strides_(attributes.integers("strides")),
        dilations_(attributes.integers("dilations")),
        pads_(attributes.integers("pads")),
        auto_pad_(attributes.text("auto_pad", "NOTSET")) {
    if (auto_pad_.empty()) auto_pad_ = "NOTSET";
    if (auto_pad_ != "NOTSET" && auto_pad_ != "VALID" && !is_same())
      xgrad::detail::fail<ValueError>("auto_pad must be NOTSET, VALID, SAME_UPPER or SAME_LOWER, got ",
                                      xgrad::detail::in_quotes(auto_pad_));
    for (const std::int64_t length : kernel_)
      if (length < 1 || length > largest)
        xgrad::detail::fail<ValueError>("kernel_shape must hold numbers from 1, got ", length);
    if (pads_) {
      for (const std::int64_t pad : *pads_)
        if (pad < 0 || pad > largest)
          xgrad::detail::fail<ValueError>("pads must hold numbers from 0, got ", pad);
    }
  }

  bool ceil_mode;

  const std::vector<std::int64_t>& kernel() const { return kernel_; }
  std::vector<std::int64_t> strides_of(std::size_t axes) const {
    return from_one(list_of_axes("strides", strides_, axes, 1), "strides");
  }
  std::vector<std::int64_t> dilations_of(std::size_t axes) const {
    return from_one(list_of_axes("dilations", dilations_, axes, 1), "dilations");
  }
  bool is_same() const { return is_same_upper() || auto_pad_ == "SAME_LOWER"; }
  bool is_same_upper() const { return auto_pad_ == "SAME_UPPER"; }

  /// Throws unless kernel_shape, if it is given, is that of a weight, behind its first two axes.
  void check_kernel(const Shape& weight) const {
    if (!kernel_.empty() && !std::equal(kernel_.begin(), kernel_.end(), weight.begin() + 2, weight.end(),
                                        [](std::int64_t a, std::size_t b) { return std::cmp_equal(a, b); }))
      xgrad::detail::fail<ShapeError>("kernel_shape does not fit the weight ", weight);
  }

  /// The pads of one of so many axes without auto_pad.
  std::pair<std::int64_t, std::int64_t> given_pads(std::size_t axis, std::size_t axes) const {
    if (!pads_ || pads_->empty() || auto_pad_ == "VALID") return {0, 0};
    if (pads_->size() != 2 * axes)
      xgrad::detail::fail<ValueError>("pads must be two for each of ", axes, " axes, got ", pads_->size());
    return {(*pads_)[axis], (*pads_)[axes + axis]};
  }

  /// The pads of one of so many axes, which has this length.
  std::pair<std::int64_t, std::int64_t> pads_of(std::size_t axis, std::size_t axes, std::int64_t length,
                                                std::int64_t kernel, std::int64_t stride,
                                                std::int64_t dilation) const {
    if (!is_same()) return given_pads(axis, axes);
    const std::int64_t count = (length + stride - 1) / stride;
    const std::int64_t all =
        std::max<std::int64_t>((count - 1) * stride + dilation * (kernel - 1) + 1 - length, 0);
    const std::int64_t small = all / 2, large = all - small;
    return is_same_upper() ? std::pair(small, large) : std::pair(large, small);
  }

  static std::vector<std::int64_t> list_of_axes(const char* name,
                                                const std::optional<std::vector<std::int64_t>>& list,
                                                std::size_t axes, std::int64_t otherwise) {
    if (!list || list->empty()) return std::vector<std::int64_t>(axes, otherwise);
    if (list->size() != axes)
      xgrad::detail::fail<ValueError>(name, " must be one for each of ", axes, " axes, got ", list->size());
    return *list;
  }

 private:
  static std::vector<std::int64_t> from_one(std::vector<std::int64_t> list, const char* name) {
    for (const std::int64_t one : list)
      if (one < 1 || one > largest)
        xgrad::detail::fail<ValueError>(name, " must hold numbers from 1, got ", one);
    return list;
  }

  std::vector<std::int64_t> kernel_;
  std::optional<std::vector<std::int64_t>> strides_, dilations_, pads_;
  std::string auto_pad_;
};

/// A convolution along one or two axes, as a node describes it.
class Convolution {
 public:
  explicit Convolution(NodeAttributes& attributes)
      : windows_(attributes), groups_(attributes.integer("group", 1)) {}

  Shape result_shape(const Shape& x, const Shape& weight) const {
    check(x, weight);
    Shape result{x[0], weight[0]};
    for (std::size_t i = 0; i + 2 < x.size(); ++i) {
      const Axis axis = axis_of(i, x, weight);
      const std::int64_t room =
          axis.length + axis.before + axis.after - axis.dilation * (axis.kernel - 1) - 1;
      result.push_back(room < 0 ? 0 : static_cast<std::size_t>(room / axis.stride + 1));
      if (room < 0)
        xgrad::detail::fail<ShapeError>("no window of ", axis.kernel, " elements fits axis ", i + 2, " of x ",
                                        x);
    }
    return result;
  }

  /// The shape of x with its pads, as they are put around it where both ends have different ones.
  Shape padded_shape(const Shape& x, const Shape& weight) const {
    Shape padded = x;
    for (std::size_t i = 0; i + 2 < x.size(); ++i) {
      const Axis axis = axis_of(i, x, weight);
      padded[i + 2] += static_cast<std::size_t>(axis.before + axis.after);
    }
    return padded;
  }

  template <class T>
  Variable<T> operator()(const Variable<T>& x, const Variable<T>& weight, const Variable<T>& bias) const {
    check(x.shape(), weight.shape());
    std::vector<std::int64_t> strides, dilations, padding, pairs;
    bool is_regular = true;
    for (std::size_t i = 0; i + 2 < x.dimension(); ++i) {
      const Axis axis = axis_of(i, x.shape(), weight.shape());
      strides.push_back(axis.stride);
      dilations.push_back(axis.dilation);
      padding.push_back(axis.before);
      pairs.insert(pairs.begin(), {axis.before, axis.after});
      is_regular = is_regular && axis.before == axis.after;
    }
    if (!is_regular) std::fill(padding.begin(), padding.end(), 0);
    const Variable<T> around = is_regular ? x : pad(x, Dims(pairs.begin(), pairs.end()));
    const ConvOptions options{.stride = Dims(strides.begin(), strides.end()),
                              .padding = Dims(padding.begin(), padding.end()),
                              .dilation = Dims(dilations.begin(), dilations.end()),
                              .groups = groups_};
    return strides.size() == 1 ? conv1d(around, weight, bias, options)
                               : conv2d(around, weight, bias, options);
  }

 private:
  struct Axis {
    std::int64_t length, kernel, stride, dilation, before, after;
  };

  void check(const Shape& x, const Shape& weight) const {
    if (x.size() != weight.size() || x.size() < 3)
      xgrad::detail::fail<ShapeError>("x and the weight must have axes behind the channels, got ", x, " and ",
                                      weight);
    if (x.size() > 4)
      xgrad::detail::fail<ValueError>("1 or 2 axes behind the channels are supported, got ", x.size() - 2);
    windows_.check_kernel(weight);
  }

  Axis axis_of(std::size_t i, const Shape& x, const Shape& weight) const {
    Axis axis{static_cast<std::int64_t>(x[i + 2]),
              static_cast<std::int64_t>(weight[i + 2]),
              windows_.strides_of(x.size() - 2)[i],
              windows_.dilations_of(x.size() - 2)[i],
              0,
              0};
    std::tie(axis.before, axis.after) =
        windows_.pads_of(i, x.size() - 2, axis.length, axis.kernel, axis.stride, axis.dilation);
    return axis;
  }

  Windows windows_;
  std::int64_t groups_;
};

}  // namespace xgrad::onnx::detail
