// What there is to test of maxima and means of windows.
#include <xgrad/ops/window/pooling.hpp>

#include <cmath>
#include <cstdint>

#include <gtest/gtest.h>

#include "../common/call.hpp"
#include "../common/draw.hpp"
#include "../common/naive.hpp"
#include "../common/op.hpp"

namespace xgrad_tests::pooling_rows {

using naive::Arguments, naive::Numbers;
using xgrad::Dims;

/// A window along an axis: its elements, and how many there are with the padding.
struct Window {
  std::vector<std::size_t> places;
  std::size_t with_padding = 0;
};

using AxisWindows = std::vector<Window>;

/// The arguments of a pool along one axis or two.
struct Sample {
  Shape x;
  Dims kernel, stride = 1, padding = 0, dilation = 1;
  bool ceil_mode = false, count_include_pad = true;
  std::ptrdiff_t divisor = 0;

  std::size_t axes() const { return kernel.size(); }
};

AxisWindows windows(const Sample& s, std::size_t i) {
  const std::ptrdiff_t length = static_cast<std::ptrdiff_t>(s.x[s.x.size() - s.axes() + i]);
  const std::ptrdiff_t padding = s.padding[i % s.padding.size()], stride = s.stride[i % s.stride.size()];
  const std::ptrdiff_t dilation = s.dilation[i % s.dilation.size()];
  AxisWindows all;
  for (std::ptrdiff_t start = -padding;; start += stride) {
    const std::ptrdiff_t last = start + (s.kernel[i] - 1) * dilation, end = length + padding;
    // in ceil_mode a window counts that is not complete, if the one before it does not end where it should
    if (last >= end && (!s.ceil_mode || start >= length || last - stride >= end - 1)) break;
    Window window;
    for (std::ptrdiff_t place = start; place <= last; place += dilation) {
      if (place < end) ++window.with_padding;
      if (place >= 0 && place < length) window.places.push_back(static_cast<std::size_t>(place));
    }
    all.push_back(window);
  }
  return all;
}

AxisWindows adaptive_windows(std::size_t length, std::size_t count) {
  AxisWindows all(count);
  for (std::size_t i = 0; i < count; ++i) {
    for (std::size_t place = i * length / count;
         static_cast<double>(place * count) < static_cast<double>((i + 1) * length); ++place)
      all[i].places.push_back(place);
    all[i].with_padding = all[i].places.size();
  }
  return all;
}

/// y = of_window(elements, elements with padding) for windows of the last axes; of rows only if there are.
template <class OfWindow>
Numbers pooled(const Numbers& x, const std::vector<AxisWindows>& axes, const OfWindow& of_window) {
  Shape shape = x.shape();
  const std::size_t line = shape.size() - 1;
  shape[line] = axes.back().size();
  if (axes.size() == 2) shape[line - 1] = axes[0].size();
  return naive::generated(shape, [&](const Shape& index) {
    std::vector<double> elements;
    Shape place = index;
    const Window& cols = axes.back()[index[line]];
    const auto add_row = [&] {
      for (const std::size_t col : cols.places) {
        place[line] = col;
        elements.push_back(naive::at(x, place));
      }
    };
    if (axes.size() == 1) {
      add_row();
      return of_window(elements, cols.with_padding);
    }
    const Window& rows = axes[0][index[line - 1]];
    for (const std::size_t row : rows.places) {
      place[line - 1] = row;
      add_row();
    }
    return of_window(elements, rows.with_padding * cols.with_padding);
  });
}

double sum_of(const std::vector<double>& elements) {
  long double sum = 0;
  for (const double element : elements) sum += element;
  return static_cast<double>(sum);
}

std::vector<AxisWindows> all_windows(const Sample& s) {
  std::vector<AxisWindows> all;
  for (std::size_t i = 0; i < s.axes(); ++i) all.push_back(windows(s, i));
  return all;
}

double largest_of(const std::vector<double>& elements, std::size_t) {
  return *std::max_element(elements.begin(), elements.end());
}

Reference naive_max_pool(const Sample& s) {
  return [=](const Arguments& x) { return pooled(x[0], all_windows(s), largest_of); };
}

Reference naive_avg_pool(const Sample& s) {
  return [=](const Arguments& x) {
    return pooled(x[0], all_windows(s), [&](const std::vector<double>& elements, std::size_t with_padding) {
      const double count = static_cast<double>(s.count_include_pad ? with_padding : elements.size());
      return sum_of(elements) / (s.divisor != 0 ? static_cast<double>(s.divisor) : count);
    });
  };
}

std::vector<AxisWindows> all_adaptive_windows(const Shape& x, const Shape& output_size) {
  std::vector<AxisWindows> all;
  for (std::size_t i = 0; i < output_size.size(); ++i)
    all.push_back(adaptive_windows(x[x.size() - output_size.size() + i], output_size[i]));
  return all;
}

Reference naive_adaptive(const Shape& output_size) {
  return [=](const Arguments& x) {
    const auto mean_of = [](const std::vector<double>& elements, std::size_t) {
      return sum_of(elements) / static_cast<double>(elements.size());
    };
    return pooled(x[0], all_adaptive_windows(x[0].shape(), output_size), mean_of);
  };
}

/// Numbers far from each other, in another order.
Array<double> far_apart(const Shape& shape) {
  Array<double> x = Array<double>::from_shape(shape);
  for (std::size_t i = 0; i < x.size(); ++i)
    x.data()[i] = static_cast<double>(std::uint64_t{i} * 48271 % x.size()) * 0x1p-14;
  return x;
}

template <class V>
auto max_pool(const V& x, const Sample& s) {
  const xgrad::MaxPoolOptions options{
      .stride = s.stride, .padding = s.padding, .dilation = s.dilation, .ceil_mode = s.ceil_mode};
  return s.axes() == 1 ? xgrad::max_pool1d(x, s.kernel[0], options) : xgrad::max_pool2d(x, s.kernel, options);
}

/// Of numbers so far from each other that neither a difference nor rounding changes which is the largest.
template <class F>
Case maxima_case(const Shape& shape, const F& f, const Reference& reference) {
  return make_case(
      {Input(shape, {-1e-5, 1e-5})},
      [=](const auto& x) {
        using V = std::decay_t<decltype(x[0])>;
        return f(x[0] + V(Array<typename V::value_type>(far_apart(shape)))).values;
      },
      [=](const Arguments& x) { return reference({Numbers(x[0] + far_apart(shape))}); });
}

Case max_case(const Sample& s) {
  return maxima_case(
      s.x, [s](const auto& x) { return max_pool(x, s); }, naive_max_pool(s));
}

Case adaptive_max_case(const Shape& shape, const Shape& output_size) {
  return maxima_case(
      shape,
      [=](const auto& x) {
        return output_size.size() == 1 ? xgrad::adaptive_max_pool1d(x, output_size[0])
                                       : xgrad::adaptive_max_pool2d(x, output_size);
      },
      [=](const Arguments& x) { return pooled(x[0], all_adaptive_windows(shape, output_size), largest_of); });
}

Case avg_case(const Sample& s) {
  return make_case(
      {s.x},
      [s](const auto& x) {
        xgrad::AvgPoolOptions options{.stride = s.stride,
                                      .padding = s.padding,
                                      .ceil_mode = s.ceil_mode,
                                      .count_include_pad = s.count_include_pad};
        if (s.divisor != 0) options.divisor_override = s.divisor;
        return s.axes() == 1 ? xgrad::avg_pool1d(x[0], s.kernel[0], options)
                             : xgrad::avg_pool2d(x[0], s.kernel, options);
      },
      naive_avg_pool(s));
}

Case adaptive_case(const Shape& shape, const Shape& output_size) {
  return make_case(
      {shape},
      [=](const auto& x) {
        return output_size.size() == 1 ? xgrad::adaptive_avg_pool1d(x[0], output_size[0])
                                       : xgrad::adaptive_avg_pool2d(x[0], output_size);
      },
      naive_adaptive(output_size));
}

template <class F>
std::vector<Case> cases_of(const F& make, const std::vector<Sample>& samples) {
  std::vector<Case> cases;
  for (const Sample& sample : samples) cases.push_back(make(sample));
  return cases;
}

std::vector<Sample> line_samples() {
  return {{.x = {2, 3, 6}, .kernel = 2, .stride = 2},
          {.x = {3, 7}, .kernel = 3, .stride = 2, .padding = 1},
          {.x = {2, 1, 6}, .kernel = 3, .stride = 2, .padding = 1, .ceil_mode = true},
          {.x = {1, 2, 5}, .kernel = 1},
          {.x = {0, 2, 5}, .kernel = 2}};
}

std::vector<Sample> image_samples() {
  return {{.x = {2, 3, 4, 6}, .kernel = {2, 2}, .stride = {2, 2}},
          {.x = {3, 5, 7}, .kernel = {3, 2}, .stride = {2, 1}, .padding = {1, 0}},
          {.x = {1, 2, 5, 6}, .kernel = {2, 3}, .stride = {2, 2}, .padding = {1, 1}, .ceil_mode = true},
          {.x = {0, 2, 5, 5}, .kernel = {2, 2}}};
}

Op max_pool_op(std::size_t axes) {
  Op op{axes == 1 ? "pooling.max_pool1d" : "pooling.max_pool2d"};
  op.cases = cases_of(max_case, axes == 1 ? line_samples() : image_samples());
  if (axes == 1) {
    op.cases.push_back(max_case({.x = {2, 9}, .kernel = 3, .padding = 1, .dilation = 2}));
    op.large = cases_of(max_case, {{.x = {3, 5, 12001}, .kernel = 4, .stride = 3, .padding = 2}});
    op.errors = {
        error<ValueError>(
            "max_pool1d: padding must be at most half of a window, got padding (2), kernel_size (2) and "
            "dilation (1)",
            [] { xgrad::max_pool1d(x(2, 6), 2, {.padding = 2}); }),
        error<ShapeError>(
            "max_pool1d: a window must not be longer than x with its padding, got x (2, 6), kernel_size "
            "(9) and dilation (1)",
            [] { xgrad::max_pool1d(x(2, 6), 9); }),
        error<ValueError>(
            "max_pool1d: each window must have an element of x, got x (2, 1), kernel_size (2), padding "
            "(1) and dilation (2)",
            [] { xgrad::max_pool1d(x(2, 1), 2, {.padding = 1, .dilation = 2}); }),
        error<ValueError>(
            "max_pool1d: kernel_size must be one number, at least 1 and at most 2147483647, got (0)",
            [] { xgrad::max_pool1d(x(2, 6), 0); })};
  } else {
    op.cases.push_back(max_case({.x = {2, 6, 9}, .kernel = {2, 3}, .padding = {1, 1}, .dilation = {2, 2}}));
    op.large =
        cases_of(max_case, {{.x = {3, 4, 101, 97}, .kernel = {3, 3}, .stride = {2, 2}, .padding = {1, 1}}});
    op.errors = {
        error<ValueError>(
            "max_pool2d: stride must be one number or 2, at least 1 and at most 2147483647, got (1, 0)",
            [] {
              xgrad::max_pool2d(x(2, 6, 6), 2, {.stride = Dims{1, 0}});
            }),
        error<ShapeError>(
            "max_pool2d: x must have the axes (channels, rows, cols) or (batch, channels, rows, cols), "
            "got (6, 6)",
            [] { xgrad::max_pool2d(x(6, 6), 2); })};
  }
  return op;
}

Op avg_pool_op(std::size_t axes) {
  Op op{axes == 1 ? "pooling.avg_pool1d" : "pooling.avg_pool2d"};
  for (const bool include : {true, false}) {
    for (Sample sample : axes == 1 ? line_samples() : image_samples()) {
      sample.count_include_pad = include;
      op.cases.push_back(avg_case(sample));
    }
  }
  if (axes == 1) {
    op.large = cases_of(avg_case, {{.x = {3, 5, 12001}, .kernel = 4, .stride = 3, .padding = 2}});
    op.errors = {
        error<ShapeError>("avg_pool1d: x must have the axes (channels, length) or (batch, channels, length), "
                          "got (6)",
                          [] { xgrad::avg_pool1d(x(6), 2); })};
  } else {
    op.cases.push_back(avg_case({.x = {2, 4, 5}, .kernel = {2, 2}, .divisor = -3}));
    op.large =
        cases_of(avg_case, {{.x = {3, 4, 101, 97}, .kernel = {3, 3}, .stride = {2, 2}, .padding = {1, 1}}});
    op.errors = {error<ValueError>("avg_pool2d: divisor_override must not be 0",
                                   [] { xgrad::avg_pool2d(x(2, 6, 6), 2, {.divisor_override = 0}); })};
  }
  return op;
}

Op adaptive1d_op() {
  return {"pooling.adaptive_avg_pool1d",
          {adaptive_case({2, 3, 7}, {3}), adaptive_case({2, 5}, {1}), adaptive_case({1, 2, 3}, {5}),
           adaptive_case({1, 2, 3}, {0})},
          {error<ValueError>(
               "adaptive_avg_pool1d: output_size must be one number, at least 0 and at most 2147483647, "
               "got (-1)",
               [] { xgrad::adaptive_avg_pool1d(x(2, 6), -1); }),
           error<ShapeError>("adaptive_avg_pool1d: there are no elements in the windows of x (2, 0)",
                             [] { xgrad::adaptive_avg_pool1d(x(2, 0), 3); })},
          {adaptive_case({7, 5, 5001}, {1000})}};
}

Op adaptive2d_op() {
  return {"pooling.adaptive_avg_pool2d",
          {adaptive_case({2, 3, 7, 5}, {3, 2}), adaptive_case({2, 5, 4}, {1, 1}),
           adaptive_case({1, 2, 3, 3}, {2, 5})},
          {error<ShapeError>(
              "adaptive_avg_pool2d: x must have the axes (channels, rows, cols) or (batch, channels, "
              "rows, cols), got (6, 6)",
              [] { xgrad::adaptive_avg_pool2d(x(6, 6), 3); })},
          {adaptive_case({3, 5, 101, 97}, {7, 30})}};
}

Op adaptive_max1d_op() {
  return {"pooling.adaptive_max_pool1d",
          {adaptive_max_case({2, 3, 7}, {3}), adaptive_max_case({2, 5}, {1}),
           adaptive_max_case({1, 2, 3}, {5}), adaptive_max_case({1, 2, 3}, {0})},
          {error<ValueError>(
               "adaptive_max_pool1d: output_size must be one number, at least 0 and at most 2147483647, "
               "got (-1)",
               [] { xgrad::adaptive_max_pool1d(x(2, 6), -1); }),
           error<ShapeError>("adaptive_max_pool1d: there are no elements in the windows of x (2, 0)",
                             [] { xgrad::adaptive_max_pool1d(x(2, 0), 3); })},
          {adaptive_max_case({3, 5, 12001}, {1000})}};
}

Op adaptive_max2d_op() {
  return {"pooling.adaptive_max_pool2d",
          {adaptive_max_case({2, 3, 7, 5}, {3, 2}), adaptive_max_case({2, 5, 4}, {1, 1}),
           adaptive_max_case({1, 2, 3, 3}, {2, 5})},
          {error<ShapeError>(
              "adaptive_max_pool2d: x must have the axes (channels, rows, cols) or (batch, channels, "
              "rows, cols), got (6, 6)",
              [] { xgrad::adaptive_max_pool2d(x(6, 6), 3); })},
          {adaptive_max_case({3, 4, 101, 97}, {7, 30})}};
}

const Rows rows([] {
  return std::vector<Op>{max_pool_op(1),  max_pool_op(2),  avg_pool_op(1),      avg_pool_op(2),
                         adaptive1d_op(), adaptive2d_op(), adaptive_max1d_op(), adaptive_max2d_op()};
});

template <class T>
xgrad::MaxPoolOptions max_options(const Call<T>& c) {
  return {.stride = c.dims("stride"),
          .padding = c.dims("padding"),
          .dilation = c.dims("dilation"),
          .ceil_mode = c.flag("ceil_mode")};
}

template <class T>
xgrad::AvgPoolOptions avg_options(const Call<T>& c) {
  xgrad::AvgPoolOptions options{.stride = c.dims("stride"),
                                .padding = c.dims("padding"),
                                .ceil_mode = c.flag("ceil_mode"),
                                .count_include_pad = c.flag("count_include_pad")};
  if (c.has_attr("divisor_override")) options.divisor_override = c.integer("divisor_override");
  return options;
}

template <class T>
Results<T> both(const xgrad::Ranked<T>& ranked) {
  return {ranked.values, as_numbers<T>(ranked.indices)};
}

const Conformance conformance{
    {"max_pool1d",
     [](const auto& c) { return both(max_pool1d(c.x(), c.list("kernel_size", 1)[0], max_options(c))); }},
    {"max_pool2d",
     [](const auto& c) { return both(max_pool2d(c.x(), c.dims("kernel_size"), max_options(c))); }},
    {"avg_pool1d",
     [](const auto& c) { return avg_pool1d(c.x(), c.list("kernel_size", 1)[0], avg_options(c)); }},
    {"avg_pool2d", [](const auto& c) { return avg_pool2d(c.x(), c.dims("kernel_size"), avg_options(c)); }},
    {"adaptive_avg_pool1d",
     [](const auto& c) { return adaptive_avg_pool1d(c.x(), c.list("output_size", 1)[0]); }},
    {"adaptive_avg_pool2d", [](const auto& c) { return adaptive_avg_pool2d(c.x(), c.dims("output_size")); }},
    {"adaptive_max_pool1d",
     [](const auto& c) { return both(adaptive_max_pool1d(c.x(), c.list("output_size", 1)[0])); }},
    {"adaptive_max_pool2d",
     [](const auto& c) { return both(adaptive_max_pool2d(c.x(), c.dims("output_size"))); }}};

/// Whether no two elements are so near to each other that rounding could change their order.
bool is_apart(const Array<double>& x) {
  std::vector<double> sorted(x.storage().begin(), x.storage().end());
  std::sort(sorted.begin(), sorted.end());
  for (std::size_t i = 1; i < sorted.size(); ++i)
    if (sorted[i] - sorted[i - 1] < 1e-4) return false;
  return true;
}

Draw pool_draw(const char* op, std::size_t axes, bool is_max) {
  return {
      op, [=](Drawing& d) {
        const Name x = d.numbers(d.shape(axes + 1, axes + 2));
        const Shape shape = d.shape(x);
        if (xgrad::element_count(shape) == 0 || (is_max && !is_apart(d.value(x)))) return;
        std::vector<std::ptrdiff_t> kernel, stride, padding, dilation;
        for (std::size_t axis = shape.size() - axes; axis < shape.size(); ++axis) {
          kernel.push_back(static_cast<std::ptrdiff_t>(1 + d.below(std::min<std::size_t>(3, shape[axis]))));
          stride.push_back(static_cast<std::ptrdiff_t>(1 + d.below(3)));
          padding.push_back(
              static_cast<std::ptrdiff_t>(d.below(static_cast<std::size_t>(kernel.back()) / 2 + 1)));
          dilation.push_back(1);
        }
        std::vector<Attr> attrs{
            {"kernel_size", kernel}, {"stride", stride}, {"padding", padding}, {"ceil_mode", d.chance(0.3)}};
        if (is_max) {
          attrs.push_back({"dilation", dilation});
          d.call(op, {x}, attrs, 2);
          return;
        }
        attrs.push_back({"count_include_pad", d.chance(0.5)});
        if (axes == 2) {
          attrs.push_back({"divisor_override", nullptr});
          if (d.chance(0.2)) attrs.back().value = std::ptrdiff_t{3};
        }
        d.call(op, {x}, attrs);
      }};
}

Draw adaptive_draw(const char* op, std::size_t axes, bool is_max) {
  return {op, [=](Drawing& d) {
            const Name x = d.numbers(d.shape(axes + 1, axes + 2));
            if (xgrad::element_count(d.shape(x)) == 0 || (is_max && !is_apart(d.value(x)))) return;
            std::vector<std::ptrdiff_t> size;
            for (std::size_t i = 0; i < axes; ++i)
              size.push_back(static_cast<std::ptrdiff_t>(1 + d.below(4)));
            d.call(op, {x}, {{"output_size", size}}, is_max ? 2 : 1);
          }};
}

const Draws draws{pool_draw("max_pool1d", 1, true),
                  pool_draw("max_pool2d", 2, true),
                  pool_draw("avg_pool1d", 1, false),
                  pool_draw("avg_pool2d", 2, false),
                  adaptive_draw("adaptive_avg_pool1d", 1, false),
                  adaptive_draw("adaptive_avg_pool2d", 2, false),
                  adaptive_draw("adaptive_max_pool1d", 1, true),
                  adaptive_draw("adaptive_max_pool2d", 2, true)};

TEST(PoolingTest, TheFirstOfEqualMaximaHasTheGradient) {
  const Variable<float> x(Array<float>{{{1, 3, 3}, {3, 2, nan}}}, true);
  const auto pooled = max_pool2d(x, {2, 2}, {.stride = 1});
  EXPECT_EQ(pooled.indices, (Ids{{{1, 5}}}));
  EXPECT_EQ(pooled.values.value()(0, 0, 0), 3);
  EXPECT_TRUE(std::isnan(pooled.values.value()(0, 0, 1)));
  pooled.values.backward(Variable<float>(Array<float>{{{5, 7}}}));
  EXPECT_EQ(x.grad().value(), (Array<float>{{{0, 5, 0}, {0, 0, 7}}}));
}

TEST(PoolingTest, WindowsFollowEachOtherWithoutAStride) {
  const Variable<float> x(Array<float>{{1, 3, 2, 8, 5}});
  EXPECT_EQ(max_pool1d(x, 2).values.value(), (Array<float>{{3, 8}}));
  EXPECT_EQ(avg_pool1d(x, 2).value(), (Array<float>{{2, 5}}));
}

TEST(PoolingTest, NoWindowIsAddedWhereAllFit) {
  const Variable<float> x(Array<float>{{1, 3, 2, 8, 5}});
  EXPECT_EQ(max_pool1d(x, 3, {.stride = 1, .ceil_mode = true}).values.value(), (Array<float>{{3, 8, 8}}));
}

TEST(PoolingTest, PaddingIsNoMaximum) {
  const Variable<float> x(Array<float>{{-3, -2, -5}});
  EXPECT_EQ(max_pool1d(x, 2, {.stride = 1, .padding = 1}).values.value(), (Array<float>{{-3, -2, -2, -5}}));
}

TEST(PoolingTest, AWindowLongerThanXIsTheLastInCeilMode) {
  const Variable<float> x(Array<float>{{{5, -1, 2}}}, true);
  const Variable<float> y = avg_pool1d(x, 4, {.stride = 3, .ceil_mode = true});
  EXPECT_EQ(y.item(), 2);
  EXPECT_FLOAT_EQ(grad(y, {x})[0].value()(0, 0, 1), 1.0F / 3);
  EXPECT_EQ(max_pool1d(x, 4, {.stride = 3, .ceil_mode = true}).values.item(), 5);
  EXPECT_FLOAT_EQ(avg_pool1d(x, 6, {.stride = 3, .padding = 1, .ceil_mode = true}).item(), 6.0F / 5);
  EXPECT_EQ(
      avg_pool1d(x, 6, {.stride = 3, .padding = 1, .ceil_mode = true, .count_include_pad = false}).item(), 2);
  const Variable<float> image(Array<float>{{{1, 2}, {1, 2}}});
  EXPECT_EQ(avg_pool2d(image, 4, {.stride = 3, .ceil_mode = true}).item(), 1.5F);
  EXPECT_EQ(max_pool2d(image, 4, {.stride = 3, .ceil_mode = true}).values.item(), 2);
  // as in PyTorch, not where x is shorter by the stride
  EXPECT_THROW(avg_pool1d(x, 5, {.stride = 2, .ceil_mode = true}), ShapeError);
}

}  // namespace xgrad_tests::pooling_rows
