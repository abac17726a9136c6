// Operators on windows of images and sequences, and their sizes.

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <numeric>
#include <tuple>

#include "../../../base/detail/text/json_text.hpp"
#include "../../../ops/index/indexing.hpp"
#include "../../../ops/pointwise/arithmetic.hpp"
#include "../../../ops/reduce/reductions.hpp"
#include "../../../ops/shape/rearrange.hpp"
#include "../../../ops/shape/shapes.hpp"
#include "../../../ops/window/convolution.hpp"
#include "../../../ops/window/pooling.hpp"
#include "../values.hpp"
#include "convolution.hpp"
#include "operators.hpp"

namespace xgrad::onnx::detail {
namespace {

using xgrad::detail::fail, xgrad::detail::in_quotes;

/// x with `value` around its last axes.
template <class T>
Variable<T> padded_around(const Variable<T>& x, const std::vector<std::int64_t>& before,
                          const std::vector<std::int64_t>& after, T value) {
  std::vector<std::int64_t> pairs;
  for (std::size_t i = before.size(); i-- > 0;) {
    pairs.push_back(before[i]);
    pairs.push_back(after[i]);
  }
  return pad(x, Dims(pairs.begin(), pairs.end()), Padding::constant, value);
}

Dims dims_of(const std::vector<std::int64_t>& list) { return {list.begin(), list.end()}; }

/// The lengths behind the channels.
std::vector<std::int64_t> spatial(const Shape& x, std::size_t axes) {
  if (x.size() != axes + 2) fail<ShapeError>("x must have ", axes + 2, " axes, got ", x);
  return {x.begin() + 2, x.end()};
}

template <class T>
Operator<T> conv_operator(const NodeDescription& node) {
  return [conv = Convolution(node.attributes)](const Arguments<T>& given) -> Results<T> {
    const Variable<T>&x = given.floats(0), &weight = given.floats(1);
    given.check_result(conv.result_shape(x.shape(), weight.shape()));
    given.check_result(conv.padded_shape(x.shape(), weight.shape()));
    return {conv(x, weight, given.floats_or_none(2))};
  };
}

/// Pads cut the result at both ends; output_padding makes its end longer. output_shape says how long it is.
template <class T>
Operator<T> conv_transpose_operator(const NodeDescription& node) {
  const Windows windows(node.attributes);
  const std::int64_t groups = node.attributes.integer("group", 1);
  const auto output_padding = node.attributes.integers("output_padding");
  const auto output_shape = node.attributes.integers("output_shape");
  return [=](const Arguments<T>& given) -> Results<T> {
    const Variable<T>&x = given.floats(0), &weight = given.floats(1);
    const std::size_t axes = weight.dimension() < 2 ? 0 : weight.dimension() - 2;
    if (axes != 1 && axes != 2) fail<ValueError>("1 or 2 axes behind the channels are supported, got ", axes);
    const std::vector<std::int64_t> lengths = spatial(x.shape(), axes);
    const std::vector<std::int64_t> kernel = spatial(weight.shape(), axes);
    windows.check_kernel(weight.shape());
    const auto strides = windows.strides_of(axes), dilations = windows.dilations_of(axes);
    const auto longer = Windows::list_of_axes("output_padding", output_padding, axes, 0);
    std::vector<std::int64_t> full(axes), before(axes), after(axes);
    Shape result{x.shape(0), weight.shape(1) * static_cast<std::size_t>(std::max<std::int64_t>(groups, 0))};
    for (std::size_t i = 0; i < axes; ++i) {
      if (longer[i] < 0 || longer[i] > Windows::largest)
        fail<ValueError>("output_padding must be at least 0, got ", longer[i]);
      full[i] = (lengths[i] - 1) * strides[i] + dilations[i] * (kernel[i] - 1) + 1;
      std::int64_t cut = 0;
      if (output_shape) {
        const auto wanted = Windows::list_of_axes("output_shape", output_shape, axes, 0);
        if (wanted[i] < 0 || wanted[i] > Windows::largest)
          fail<ValueError>("output_shape must hold numbers from 0, got ", wanted[i]);
        cut = full[i] + longer[i] - wanted[i];
      } else if (windows.is_same()) {
        cut = full[i] + longer[i] - lengths[i] * strides[i];
      } else {
        std::tie(before[i], after[i]) = windows.given_pads(i, axes);
      }
      if (output_shape || windows.is_same()) {
        // what a longer result has more is at its end
        const std::int64_t small = cut < 0 ? 0 : cut / 2, large = cut < 0 ? 0 : cut - small;
        before[i] = windows.is_same_upper() ? small : large;
        after[i] = cut < 0 ? cut : windows.is_same_upper() ? large : small;
      }
      const std::int64_t length = full[i] + longer[i] - before[i] - after[i];
      if (length < 0) fail<ShapeError>("pads leave nothing of axis ", i + 2, " of ", full[i], " elements");
      result.push_back(static_cast<std::size_t>(std::max(length, full[i])));
    }
    given.check_result(result);
    const ConvTransposeOptions options{
        .stride = dims_of(strides), .groups = groups, .dilation = dims_of(dilations)};
    const Variable<T> none;
    Variable<T> y =
        axes == 1 ? conv_transpose1d(x, weight, none, options) : conv_transpose2d(x, weight, none, options);
    std::vector<std::int64_t> front(axes), back(axes);
    for (std::size_t i = 0; i < axes; ++i) {
      front[i] = -before[i];
      back[i] = longer[i] - after[i];
    }
    y = padded_around(y, front, back, T{0});
    if (!given.has(2)) return {y};
    Shape bias(axes + 1, 1);
    bias[0] = y.shape(1);
    if (given.floats(2).shape() != Shape{bias[0]})
      fail<ShapeError>("B must be (", bias[0], "), got ", given.floats(2).shape());
    return {y + reshape(given.floats(2), Dims(bias))};
  };
}

/// The elements of windows of an x whose ends may have other lengths than a pool of xgrad takes: then x has
/// its pads, and behind them what the last windows take beyond.
template <class T>
struct PooledWindows {
  Variable<T> x;
  std::vector<std::int64_t> kernel, strides, dilations, before, after, beyond, padding;
  std::size_t axes;
  bool ceil_mode, is_padded = false;  // whether x has its pads

  PooledWindows(const Windows& windows, const Arguments<T>& given, Variable<T> of, T filling)
      : x(std::move(of)) {
    axes = windows.kernel().size();
    const std::vector<std::int64_t> lengths = spatial(x.shape(), axes);
    if (axes != 1 && axes != 2) fail<ValueError>("1 or 2 axes behind the channels are supported, got ", axes);
    kernel = windows.kernel();
    strides = windows.strides_of(axes);
    dilations = windows.dilations_of(axes);
    ceil_mode = windows.ceil_mode;
    padding.assign(axes, 0);
    bool is_regular = true;
    for (std::size_t i = 0; i < axes; ++i) {
      const auto [front, back] = windows.pads_of(i, axes, lengths[i], kernel[i], strides[i], dilations[i]);
      const std::int64_t window = dilations[i] * (kernel[i] - 1) + 1, length = lengths[i] + front + back;
      before.push_back(front);
      after.push_back(back);
      beyond.push_back(ceil_mode ? beyond_end(lengths[i] + front, length, window, strides[i]) : 0);
      is_regular = is_regular && front == back && 2 * front <= kernel[i] && window <= length;
      if (front >= window || back >= window)
        fail<ValueError>("pads must be less than a window, got ", front, " and ", back);
    }
    if (is_regular) {
      padding = before;
      return;
    }
    x = padded(x, given, filling);
    ceil_mode = false;
    is_padded = true;
  }

  /// An x with its pads and what is behind them.
  Variable<T> padded(const Variable<T>& of, const Arguments<T>& given, T filling) const {
    std::vector<std::int64_t> end = after;
    Shape shape = of.shape();
    for (std::size_t i = 0; i < axes; ++i) {
      end[i] += beyond[i];
      shape[i + 2] += static_cast<std::size_t>(before[i] + end[i]);
    }
    given.check_result(shape);
    return padded_around(of, before, end, filling);
  }

 private:
  /// How much the last window needs behind an axis of `length` with its pads; each window begins in front of
  /// the pads at the end, at `end`.
  static std::int64_t beyond_end(std::int64_t end, std::int64_t length, std::int64_t window,
                                 std::int64_t stride) {
    const std::int64_t room = length - window;
    std::int64_t last = room > 0 ? (room + stride - 1) / stride : -(-room / stride);
    if (last * stride >= end) --last;
    return last < 0 ? 0 : std::max<std::int64_t>(last * stride + window - length, 0);
  }
};

/// The indices of a pool among all elements of x, not among those of a channel of a padded x. Where nothing
/// of a window is larger than a pad, the index is that of its first element in x.
Ids indices_of_all(const Ids& in_channel, const Shape& pooled, const Shape& x,
                   const std::vector<std::int64_t>& before, const std::vector<std::int64_t>& dilations) {
  Ids all = in_channel;
  const std::size_t axes = before.size(), channel = element_count(Shape(x.begin() + 2, x.end()));
  const std::size_t each = in_channel.size() / std::max<std::size_t>(x[0] * x[1], 1);
  for (std::size_t i = 0; i < all.size(); ++i) {
    auto rest = static_cast<std::size_t>(in_channel.data()[i]);
    std::size_t place = 0, stride = 1;
    for (std::size_t axis = axes; axis-- > 0; rest /= pooled[axis + 2]) {
      auto in_x = static_cast<std::int64_t>(rest % pooled[axis + 2]) - before[axis];
      if (in_x < 0) in_x = (in_x % dilations[axis] + dilations[axis]) % dilations[axis];
      if (in_x >= static_cast<std::int64_t>(x[axis + 2]))
        fail<ValueError>("a window without elements of x has no index");
      place += static_cast<std::size_t>(in_x) * stride;
      stride *= x[axis + 2];
    }
    all.data()[i] = static_cast<std::int64_t>(i / each * channel + place);
  }
  return all;
}

template <class T>
Operator<T> max_pool_operator(const NodeDescription& node) {
  const Windows windows(node.attributes, true);
  if (windows.kernel().empty()) fail<ValueError>("kernel_shape is missing");
  if (node.attributes.integer("storage_order", 0) != 0 && node.outputs > 1)
    fail<ValueError>("indices in order of columns are not supported (storage_order)");
  return [windows, outputs = node.outputs](const Arguments<T>& given) -> Results<T> {
    const bool is_integer = std::holds_alternative<Ids>(given.value(0));  // of 8 bits
    const Variable<T> x =
        is_integer
            ? Variable<T>(mapped<T>(given.integers(0), [](std::int64_t e) { return static_cast<T>(e); }))
            : given.floats(0);
    const PooledWindows<T> p(windows, given, x, -std::numeric_limits<T>::infinity());
    const MaxPoolOptions options{.stride = dims_of(p.strides),
                                 .padding = dims_of(p.padding),
                                 .dilation = dims_of(p.dilations),
                                 .ceil_mode = p.ceil_mode};
    Ranked<T> y =
        p.axes == 1 ? max_pool1d(p.x, p.kernel[0], options) : max_pool2d(p.x, dims_of(p.kernel), options);
    Value<T> values = y.values;
    if (is_integer)
      values = mapped<std::int64_t>(y.values.value(), [](T e) { return static_cast<std::int64_t>(e); });
    if (outputs == 1) return {std::move(values)};
    const std::vector<std::int64_t> none(p.axes, 0);
    Ids indices =
        indices_of_all(y.indices, p.x.shape(), x.shape(), p.is_padded ? p.before : none, p.dilations);
    return {std::move(values), std::move(indices)};
  };
}

template <class T>
Operator<T> average_pool_operator(const NodeDescription& node) {
  const Windows windows(node.attributes, true);
  if (windows.kernel().empty()) fail<ValueError>("kernel_shape is missing");
  const bool counts_pads = node.attributes.integer("count_include_pad", 0) != 0;
  const auto dilations = windows.dilations_of(windows.kernel().size());
  if (std::any_of(dilations.begin(), dilations.end(), [](std::int64_t one) { return one != 1; }))
    fail<ValueError>("dilations of means are not supported");
  return [windows, counts_pads](const Arguments<T>& given) -> Results<T> {
    const PooledWindows<T> p(windows, given, given.floats(0), T{0});
    const AvgPoolOptions options{.stride = dims_of(p.strides),
                                 .padding = dims_of(p.padding),
                                 .ceil_mode = p.ceil_mode,
                                 .count_include_pad = counts_pads || p.is_padded};
    const auto pooled = [&](const Variable<T>& x) {
      return p.axes == 1 ? avg_pool1d(x, p.kernel[0], options) : avg_pool2d(x, dims_of(p.kernel), options);
    };
    const Variable<T> y = pooled(p.x);
    if (!p.is_padded) return {y};
    // the mean is of what counts, of which nothing is beyond the pads
    const Variable<T> ones(Array<T>(given.floats(0).shape(), T{1}));
    if (!counts_pads) return {y / pooled(p.padded(ones, given, T{0}))};
    const std::vector<std::int64_t> none(p.axes, 0);
    return {y / pooled(padded_around(padded_around(ones, p.before, p.after, T{1}), none, p.beyond, T{0}))};
  };
}

template <class T, Variable<T> (*f)(const Variable<T>&, const Dims&, ReduceOptions)>
Operator<T> global_pool(const NodeDescription&) {
  return [](const Arguments<T>& given) -> Results<T> {
    const Variable<T>& x = given.floats(0);
    if (x.dimension() < 3) fail<ShapeError>("x must have axes behind the channels, got ", x.shape());
    std::vector<std::ptrdiff_t> axes(x.dimension() - 2);
    std::iota(axes.begin(), axes.end(), std::ptrdiff_t{2});
    return {f(x, Dims(axes.begin(), axes.end()), {.keepdim = true})};
  };
}

// ---- Resize ----

// What Sources take for each element; those of a long axis could be more than the result.
constexpr std::size_t bytes_of_source = 64;

/// Where elements of a resized axis come from: each is a sum of some of x, times their weights.
struct Sources {
  std::vector<std::vector<std::size_t>> places;
  std::vector<std::vector<double>> weights;  // empty: 1
};

/// How the elements of a resized axis relate to those of x. The nearest mode "simple", of opsets before 11,
/// takes the next element of a shorter axis, and the last one of a longer axis.
struct Resizing {
  std::string mode, coordinates, nearest_mode;
  double cubic = -0.75;

  /// Where element i of n would be on an axis of `length` elements.
  double place(std::size_t i, std::size_t length, std::size_t n, float scale) const {
    const auto x = static_cast<float>(i);
    if (coordinates == "asymmetric") return x / scale;
    if (coordinates == "align_corners")
      return n == 1 ? 0
                    : static_cast<double>(i) * static_cast<double>(length - 1) / static_cast<double>(n - 1);
    if (coordinates == "pytorch_half_pixel" && n == 1) return 0;
    if (coordinates == "tf_half_pixel_for_nn") return (x + 0.5F) / scale;
    float moved = 0;
    if (coordinates == "half_pixel_symmetric") {
      const float size = static_cast<float>(length), exact = scale * size;
      moved = size / 2 * (1 - static_cast<float>(n) / exact);
    }
    return moved + (x + 0.5F) / scale - 0.5F;
  }

  double rounded(double x, float scale) const {
    if (nearest_mode == "simple") return scale < 1 ? std::ceil(x) : std::floor(x);
    if (nearest_mode == "floor") return std::floor(x);
    if (nearest_mode == "ceil") return std::ceil(x);
    return nearest_mode == "round_prefer_ceil" ? std::floor(x + 0.5) : std::ceil(x - 0.5);
  }

  Sources sources(std::size_t length, std::size_t n, float scale) const {
    const auto inside = [&](double x) {
      return static_cast<std::size_t>(std::clamp(x, 0.0, static_cast<double>(length - 1)));
    };
    Sources from;
    const std::size_t count = mode == "nearest" ? 1 : mode == "linear" ? 2 : 4;
    from.places.resize(count, std::vector<std::size_t>(n));
    if (count > 1) from.weights.resize(count, std::vector<double>(n));
    for (std::size_t i = 0; i < n; ++i) {
      double x = place(i, length, n, scale);
      if (count == 1) {
        from.places[0][i] = inside(rounded(x, scale));
        continue;
      }
      if (count == 2) x = std::clamp(x, 0.0, static_cast<double>(length - 1));
      const double first = std::floor(x), t = x - first;
      for (std::size_t k = 0; k < count; ++k) {
        const double offset = count == 2 ? static_cast<double>(k) : static_cast<double>(k) - 1;
        from.places[k][i] = inside(first + offset);
        from.weights[k][i] = count == 2 ? (k == 0 ? 1 - t : t) : cubic_weight(std::abs(t - offset));
      }
    }
    return from;
  }

 private:
  /// Cubic convolution (Keys 1981).
  double cubic_weight(double d) const {
    if (d <= 1) return ((cubic + 2) * d - (cubic + 3)) * d * d + 1;
    return ((cubic * d - 5 * cubic) * d + 8 * cubic) * d - 4 * cubic;
  }
};

template <class T>
Variable<T> resized(const Variable<T>& x, std::size_t axis, const Sources& from) {
  Variable<T> y;
  for (std::size_t k = 0; k < from.places.size(); ++k) {
    Variable<T> part = index_select(x, static_cast<int>(axis), list_of(from.places[k]));
    if (!from.weights.empty()) {
      Shape shape(x.dimension(), 1);
      shape[axis] = from.weights[k].size();
      Array<T> weights = Array<T>::from_shape(shape);
      std::transform(from.weights[k].begin(), from.weights[k].end(), weights.data(),
                     [](double w) { return static_cast<T>(w); });
      part = part * Variable<T>(std::move(weights));
    }
    y = y.defined() ? y + part : part;
  }
  return y;
}

/// Scales, or sizes, are inputs 2 and 3; input 1 before opset 11.
template <class T, bool is_upsample>
Operator<T> resize_operator(const NodeDescription& node) {
  NodeAttributes& attributes = node.attributes;
  constexpr std::int64_t last_of_upsample = 9;
  if (is_upsample && node.opset > last_of_upsample)
    fail<ValueError>("there is no such operator after operator set ", last_of_upsample);
  Resizing how{
      attributes.text("mode", "nearest"),
      attributes.text("coordinate_transformation_mode", node.opset < 11 ? "asymmetric" : "half_pixel"),
      node.opset < 11 ? "simple" : attributes.text("nearest_mode", "round_prefer_floor"),
      attributes.number("cubic_coeff_a", -0.75)};
  if (how.mode == "bilinear") how.mode = "linear";
  const auto check = [](const char* name, const std::string& text, std::initializer_list<const char*> known) {
    if (std::find(known.begin(), known.end(), text) == known.end())
      fail<ValueError>(name, " ", in_quotes(text), " is not supported");
  };
  check("mode", how.mode, {"nearest", "linear", "cubic"});
  check("coordinate_transformation_mode", how.coordinates,
        {"half_pixel", "half_pixel_symmetric", "pytorch_half_pixel", "align_corners", "asymmetric",
         "tf_half_pixel_for_nn"});
  if (node.opset >= 11)
    check("nearest_mode", how.nearest_mode, {"round_prefer_floor", "round_prefer_ceil", "floor", "ceil"});
  check("keep_aspect_ratio_policy", attributes.text("keep_aspect_ratio_policy", "stretch"), {"stretch"});
  if (attributes.integer("antialias", 0) != 0) fail<ValueError>("antialias is not supported");
  if (attributes.integer("exclude_outside", 0) != 0) fail<ValueError>("exclude_outside is not supported");
  attributes.ignore("extrapolation_value");
  const auto attribute_axes = attributes.integers("axes");
  const auto attribute_scales = attributes.numbers("scales");
  const std::size_t scales_at = node.opset < 11 ? 1 : 2;
  return [=](const Arguments<T>& given) -> Results<T> {
    Variable<T> x = given.floats(0);
    std::vector<std::int64_t> list(x.dimension());
    std::iota(list.begin(), list.end(), 0);
    if (attribute_axes) list = *attribute_axes;
    axes_of(list, x.dimension());
    std::vector<float> scales = attribute_scales.value_or(std::vector<float>());
    if (scales.empty() && given.has(scales_at)) {
      for (const T scale : given.floats(scales_at).value()) scales.push_back(static_cast<float>(scale));
    }
    std::vector<std::int64_t> sizes;
    if (given.has(3)) sizes = given.list(3);
    if (!scales.empty() && !sizes.empty()) fail<ValueError>("there must be scales or sizes, got both");
    if (std::max(scales.size(), sizes.size()) != list.size())
      fail<ShapeError>("there must be a scale or a size for each of ", list.size(), " axes, got ",
                       std::max(scales.size(), sizes.size()));
    Shape shape = x.shape();
    for (std::size_t i = 0; i < list.size(); ++i) {
      const std::size_t axis = axis_of(list[i], x.dimension()), length = shape[axis];
      const double wanted = sizes.empty()
                                ? std::floor(static_cast<double>(scales[i]) * static_cast<double>(length))
                                : static_cast<double>(sizes[i]);
      if (!(wanted >= 1 && wanted < 1e15) || length == 0)
        fail<ShapeError>("axis ", axis, " of x ", shape, " cannot be resized to ", wanted);
      const auto n = static_cast<std::size_t>(wanted);
      const float scale = sizes.empty() ? scales[i] : static_cast<float>(n) / static_cast<float>(length);
      if (n == length && scale == 1) continue;
      shape[axis] = n;
      given.check_result(shape);
      given.check_result({n, bytes_of_source});
      x = resized(x, axis, how.sources(length, n, scale));
    }
    return {x};
  };
}

// ---- Channels and places ----

template <class T>
Operator<T> depth_to_space(const NodeDescription& node) {
  const std::int64_t b = node.attributes.integer("blocksize", 0);
  const std::string mode = node.attributes.text("mode", "DCR");
  if (b < 1 || b > Windows::largest) fail<ValueError>("blocksize must be at least 1, got ", b);
  if (mode != "DCR" && mode != "CRD") fail<ValueError>("mode must be DCR or CRD, got ", in_quotes(mode));
  return [b, is_dcr = mode == "DCR"](const Arguments<T>& given) -> Results<T> {
    const Variable<T>& x = given.floats(0);
    const auto lengths = spatial(x.shape(), 2);
    const auto n = static_cast<std::int64_t>(x.shape(0)), channels = static_cast<std::int64_t>(x.shape(1));
    if (channels % b != 0 || channels / b % b != 0)
      fail<ShapeError>("channels must be a multiple of blocksize^2, got ", channels, " and ", b);
    const std::int64_t c = channels / b / b, h = lengths[0], w = lengths[1];
    const Variable<T> y = is_dcr ? permute(reshape(x, {n, b, b, c, h, w}), {0, 3, 4, 1, 5, 2})
                                 : permute(reshape(x, {n, c, b, b, h, w}), {0, 1, 4, 2, 5, 3});
    return {reshape(y, {n, c, h * b, w * b})};
  };
}

template <class T>
Operator<T> space_to_depth(const NodeDescription& node) {
  const std::int64_t b = node.attributes.integer("blocksize", 0);
  if (b < 1 || b > Windows::largest) fail<ValueError>("blocksize must be at least 1, got ", b);
  return [b](const Arguments<T>& given) -> Results<T> {
    const Variable<T>& x = given.floats(0);
    const auto lengths = spatial(x.shape(), 2);
    const auto n = static_cast<std::int64_t>(x.shape(0)), c = static_cast<std::int64_t>(x.shape(1));
    if (lengths[0] < b || lengths[1] < b || lengths[0] % b != 0 || lengths[1] % b != 0)
      fail<ShapeError>("lengths must be multiples of blocksize ", b, ", got x ", x.shape());
    const std::int64_t h = lengths[0] / b, w = lengths[1] / b;
    return {reshape(permute(reshape(x, {n, c, h, b, w, b}), {0, 3, 5, 1, 2, 4}), {n, c * b * b, h, w})};
  };
}

}  // namespace

template <class T>
void add_window_operators(OperatorTable<T>& table) {
  table["Conv"] = conv_operator<T>;
  table["ConvTranspose"] = conv_transpose_operator<T>;
  table["MaxPool"] = max_pool_operator<T>;
  table["AveragePool"] = average_pool_operator<T>;
  table["GlobalAveragePool"] = global_pool<T, mean<T>>;
  table["GlobalMaxPool"] = global_pool<T, amax<T>>;
  table["Resize"] = resize_operator<T, false>;
  table["Upsample"] = resize_operator<T, true>;
  table["DepthToSpace"] = depth_to_space<T>;
  table["SpaceToDepth"] = space_to_depth<T>;
}

template void add_window_operators(OperatorTable<float>&);
template void add_window_operators(OperatorTable<double>&);

}  // namespace xgrad::onnx::detail
