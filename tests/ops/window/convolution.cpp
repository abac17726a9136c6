// What there is to test of convolutions and transposed ones.
#include <xgrad/ops/window/convolution.hpp>

#include <gtest/gtest.h>

#include "../../programs/json_file.hpp"
#include "../common/call.hpp"
#include "../common/draw.hpp"
#include "../common/naive.hpp"
#include "../common/op.hpp"

namespace xgrad_tests::convolution_rows {

using naive::Arguments, naive::Numbers;
using xgrad::ConvPadding;

/// The arguments of a call along one axis or two, for both of which there are numbers.
struct Sample {
  Shape x, weight;
  bool bias = true;
  std::ptrdiff_t stride[2] = {1, 1}, padding[2] = {0, 0}, dilation[2] = {1, 1}, output_padding[2] = {0, 0};
  std::size_t groups = 1;

  std::size_t axes() const { return weight.size() - 2; }
  xgrad::Dims numbers(const std::ptrdiff_t (&of)[2]) const {
    return axes() == 1 ? xgrad::Dims(of[1]) : xgrad::Dims(of[0], of[1]);
  }
};

/// Numbers of the last axes; 1 for the rows of a line.
struct Image {
  Image(const Sample& sample, const Shape& shape)
      : rows(sample.axes() == 1 ? 1 : static_cast<std::ptrdiff_t>(shape[shape.size() - 2])),
        cols(static_cast<std::ptrdiff_t>(shape.back())),
        size(static_cast<std::size_t>(rows * cols)) {}

  std::ptrdiff_t rows, cols;
  std::size_t size;
};

/// Calls f(map, image, weight) with the numbers of three elements whose product counts, for maps (N, O, ...)
/// of images (N, C, ...) and a weight (O, C / groups, ...).
template <class F>
void for_each_product(const Sample& sample, const Shape& images, const Shape& maps, const F& f) {
  const Image image(sample, images), map(sample, maps), kernel(sample, sample.weight);
  const std::size_t batched = images.size() == sample.axes() + 2 ? 1 : 0, batch = batched ? images[0] : 1;
  const std::size_t out = sample.weight[0], in = sample.weight[1], channels = in * sample.groups;
  const auto place = [](std::ptrdiff_t window, std::ptrdiff_t k, std::ptrdiff_t stride,
                        std::ptrdiff_t dilation,
                        std::ptrdiff_t padding) { return window * stride + k * dilation - padding; };
  for (std::size_t n = 0; n < batch; ++n) {
    for (std::size_t o = 0; o < out; ++o) {
      for (std::size_t c = 0; c < in; ++c) {
        const std::size_t plane = (n * channels + o / (out / sample.groups) * in + c) * image.size;
        for (std::ptrdiff_t k = 0; k < kernel.rows * kernel.cols; ++k) {
          for (std::ptrdiff_t w = 0; w < map.rows * map.cols; ++w) {
            const std::ptrdiff_t row =
                place(w / map.cols, k / kernel.cols, sample.stride[0], sample.dilation[0], sample.padding[0]);
            const std::ptrdiff_t col =
                place(w % map.cols, k % kernel.cols, sample.stride[1], sample.dilation[1], sample.padding[1]);
            if (row < 0 || row >= image.rows || col < 0 || col >= image.cols) continue;
            f((n * out + o) * map.size + static_cast<std::size_t>(w),
              plane + static_cast<std::size_t>(row * image.cols + col),
              (o * in + c) * kernel.size + static_cast<std::size_t>(k));
          }
        }
      }
    }
  }
}

/// Each channel begins with its bias.
Numbers biased(const Sample& sample, const Shape& shape, const Arguments& x) {
  const std::size_t axis = shape.size() - sample.axes() - 1;
  return naive::generated(shape,
                          [&](const Shape& index) { return sample.bias ? x[2].data()[index[axis]] : 0.0; });
}

/// With as much padding as keeps the lengths if `same`, of an odd number one more at the end.
Reference naive_convolution(const Sample& sample, bool same) {
  return [=](const Arguments& x) {
    Sample s = sample;
    Shape shape = s.x;
    shape[shape.size() - s.axes() - 1] = s.weight[0];
    for (std::size_t i = 0; i < s.axes(); ++i) {
      const std::size_t axis = shape.size() - s.axes() + i, which = 2 - s.axes() + i;
      const auto span = static_cast<std::ptrdiff_t>(s.weight[2 + i] - 1) * s.dilation[which];
      if (same) {
        s.padding[which] = span / 2;
      } else {
        const std::ptrdiff_t room =
            static_cast<std::ptrdiff_t>(shape[axis]) + 2 * s.padding[which] - span - 1;
        shape[axis] = static_cast<std::size_t>(room / s.stride[which] + 1);
      }
    }
    Numbers y = biased(s, shape, x);
    for_each_product(s, s.x, shape, [&](std::size_t map, std::size_t image, std::size_t weight) {
      y.data()[map] += x[0].data()[image] * x[1].data()[weight];
    });
    return y;
  };
}

Reference naive_transposed(const Sample& sample) {
  return [=](const Arguments& x) {
    Shape shape = sample.x;
    shape[shape.size() - sample.axes() - 1] = sample.weight[1] * sample.groups;
    for (std::size_t i = 0; i < sample.axes(); ++i) {
      const std::size_t axis = shape.size() - sample.axes() + i, which = 2 - sample.axes() + i;
      shape[axis] = static_cast<std::size_t>(
          static_cast<std::ptrdiff_t>(shape[axis] - 1) * sample.stride[which] - 2 * sample.padding[which] +
          static_cast<std::ptrdiff_t>(sample.weight[2 + i] - 1) * sample.dilation[which] +
          sample.output_padding[which] + 1);
    }
    Numbers y = biased(sample, shape, x);
    for_each_product(sample, shape, sample.x, [&](std::size_t map, std::size_t image, std::size_t weight) {
      y.data()[image] += x[0].data()[map] * x[1].data()[weight];
    });
    return y;
  };
}

std::vector<Input> inputs_of(const Sample& sample, std::size_t channels) {
  std::vector<Input> inputs{sample.x, sample.weight};
  if (sample.bias) inputs.push_back(Shape{channels});
  return inputs;
}

template <class Inputs>
auto bias_of(const Inputs& x) {
  return x.size() > 2 ? x[2] : typename Inputs::value_type();
}

Case conv_case(const Sample& sample, bool same = false) {
  return make_case(
      inputs_of(sample, sample.weight[0]),
      [=](const auto& x) {
        const xgrad::ConvOptions options{
            .stride = sample.numbers(sample.stride),
            .padding = same ? ConvPadding(ConvPadding::same) : ConvPadding(sample.numbers(sample.padding)),
            .dilation = sample.numbers(sample.dilation),
            .groups = sample.groups};
        return sample.axes() == 1 ? xgrad::conv1d(x[0], x[1], bias_of(x), options)
                                  : xgrad::conv2d(x[0], x[1], bias_of(x), options);
      },
      naive_convolution(sample, same));
}

Case transposed_case(const Sample& sample) {
  return make_case(
      inputs_of(sample, sample.weight[1] * sample.groups),
      [=](const auto& x) {
        const xgrad::ConvTransposeOptions options{.stride = sample.numbers(sample.stride),
                                                  .padding = sample.numbers(sample.padding),
                                                  .output_padding = sample.numbers(sample.output_padding),
                                                  .groups = sample.groups,
                                                  .dilation = sample.numbers(sample.dilation)};
        return sample.axes() == 1 ? xgrad::conv_transpose1d(x[0], x[1], bias_of(x), options)
                                  : xgrad::conv_transpose2d(x[0], x[1], bias_of(x), options);
      },
      naive_transposed(sample));
}

Op conv1d_op() {
  Op op{"convolution.conv1d"};
  op.cases = {
      conv_case({{2, 3, 5}, {4, 3, 2}}),
      conv_case({.x = {2, 2, 9}, .weight = {4, 1, 3}, .stride = {1, 2}, .padding = {0, 1}, .groups = 2}),
      conv_case({{3, 7}, {2, 3, 3}, false}),
      conv_case({.x = {2, 4, 6}, .weight = {6, 2, 3}, .stride = {1, 2}, .padding = {0, 2}, .groups = 2}),
      conv_case({.x = {1, 2, 9}, .weight = {2, 1, 2}, .dilation = {1, 3}, .groups = 2}),
      conv_case({.x = {2, 2, 5}, .weight = {3, 2, 4}, .dilation = {1, 2}}, true),
      conv_case({{2, 3, 5}, {4, 3, 1}}),
      conv_case({.x = {1, 2, 3}, .weight = {3, 2, 3}, .padding = {0, 1 << 20}, .dilation = {1, 1 << 20}}),
      conv_case({{0, 3, 5}, {4, 3, 2}})};
  op.large = {conv_case({.x = {5, 16, 4001}, .weight = {12, 8, 5}, .padding = {0, 2}, .groups = 2}),
              conv_case({{2, 8, 20001}, {8, 8, 1}}),
              conv_case({.x = {1, 2, 50001}, .weight = {2, 1, 3}, .groups = 2})};
  op.errors = {
      error<ShapeError>(
          "conv1d: x must have the axes (channels, length) or (batch, channels, length), got (5)",
          [] { xgrad::conv1d(x(5), x(4, 3, 2)); }),
      error<ShapeError>("conv1d: weight must have the axes (O, C / groups, K), got (4, 3)",
                        [] { xgrad::conv1d(x(3, 5), x(4, 3)); }),
      error<ShapeError>("conv1d: x must have 4 channels to fit weight (4, 2, 2) with 2 groups, got x (3, 5)",
                        [] { xgrad::conv1d(x(3, 5), x(4, 2, 2), {}, {.groups = 2}); }),
      error<ShapeError>("conv1d: bias must have shape (4) to fit weight (4, 3, 2), got (3)",
                        [] { xgrad::conv1d(x(3, 5), x(4, 3, 2), x(3)); }),
      error<ShapeError>("conv1d: a kernel must have elements, got weight (4, 3, 0)",
                        [] { xgrad::conv1d(x(3, 5), x(4, 3, 0)); }),
      error<ValueError>(
          "conv1d: groups must be at least 1 and divide the first axis of weight (4, 1, 2), got 3",
          [] { xgrad::conv1d(x(3, 5), x(4, 1, 2), {}, {.groups = 3}); }),
      error<ShapeError>("conv1d: the kernel must not be longer than x with its padding, got x (3, 5), weight "
                        "(4, 3, 2) and dilation (7)",
                        [] { xgrad::conv1d(x(3, 5), x(4, 3, 2), {}, {.padding = 1, .dilation = 7}); }),
      error<ValueError>("conv1d: stride must be one number, at least 1 and at most 2147483647, got (0)",
                        [] { xgrad::conv1d(x(3, 5), x(4, 3, 2), {}, {.stride = 0}); }),
      error<ValueError>("conv1d: padding that keeps the lengths needs stride 1, got (2)", [] {
        xgrad::conv1d(x(3, 5), x(4, 3, 2), {}, {.stride = 2, .padding = ConvPadding::same});
      })};
  return op;
}

Op conv2d_op() {
  Op op{"convolution.conv2d"};
  op.cases = {conv_case({{2, 3, 5, 4}, {4, 3, 2, 3}}),
              conv_case({{3, 4, 5}, {2, 3, 3, 1}, false}),
              conv_case({.x = {2, 2, 6, 5},
                         .weight = {4, 1, 3, 2},
                         .stride = {2, 1},
                         .padding = {1, 2},
                         .dilation = {1, 2},
                         .groups = 2}),
              conv_case({.x = {1, 2, 4, 5}, .weight = {2, 2, 2, 3}, .dilation = {2, 1}}, true),
              conv_case({.x = {2, 3, 8, 10},
                         .weight = {11, 3, 3, 3},
                         .stride = {3, 2},
                         .padding = {2, 1},
                         .dilation = {2, 1}}),
              conv_case({.x = {1, 2, 3, 4}, .weight = {7, 2, 2, 2}, .padding = {3, 2}}),
              conv_case({{2, 3, 2, 2}, {2, 3, 1, 1}}),
              conv_case({{0, 2, 3, 3}, {2, 2, 2, 2}})};
  op.large = {conv_case({.x = {3, 8, 61, 47}, .weight = {10, 8, 3, 3}, .padding = {1, 1}}),
              conv_case({.x = {2, 40, 53, 41}, .weight = {40, 1, 3, 3}, .stride = {2, 1}, .groups = 40}),
              conv_case({{1, 64, 11, 300}, {3, 64, 2, 2}}),
              conv_case({.x = {1, 24, 40, 700}, .weight = {8, 12, 2, 2}, .padding = {1, 0}, .groups = 2})};
  op.errors = {
      error<ShapeError>(
          "conv2d: x must have the axes (channels, rows, cols) or (batch, channels, rows, cols), got "
          "(5, 5)",
          [] { xgrad::conv2d(x(5, 5), x(4, 3, 2, 2)); }),
      error<ValueError>(
          "conv2d: padding must be one number or 2, at least 0 and at most 2147483647, got (0, -1)",
          [] {
            xgrad::conv2d(x(3, 5, 5), x(4, 3, 2, 2), {}, {.padding = {0, -1}});
          }),
      error<ValueError>("conv2d: dilation must be one number or 2, at least 1 and at most 2147483647, got "
                        "(1, 1, 1)",
                        [] {
                          xgrad::conv2d(x(3, 5, 5), x(4, 3, 2, 2), {}, {.dilation = {1, 1, 1}});
                        }),
      error<ShapeError>("conv2d: weight must have the axes (O, C / groups, KH, KW), got (4, 3, 2)",
                        [] { xgrad::conv2d(x(3, 5, 5), x(4, 3, 2)); })};
  return op;
}

Op conv_transpose1d_op() {
  Op op{"convolution.conv_transpose1d"};
  op.cases = {transposed_case({{2, 3, 5}, {3, 4, 2}}),
              transposed_case(
                  {.x = {2, 2, 5}, .weight = {2, 2, 3}, .stride = {1, 2}, .padding = {0, 1}, .groups = 2}),
              transposed_case({{3, 4}, {3, 2, 3}, false}),
              transposed_case({.x = {2, 4, 3},
                               .weight = {4, 3, 3},
                               .stride = {1, 3},
                               .padding = {0, 1},
                               .dilation = {1, 2},
                               .output_padding = {0, 2},
                               .groups = 2}),
              transposed_case({{2, 3, 5}, {3, 4, 1}}),
              transposed_case({{0, 3, 5}, {3, 4, 2}})};
  op.large = {transposed_case({.x = {5, 8, 3001}, .weight = {8, 6, 4}, .stride = {1, 2}, .groups = 2}),
              transposed_case({{2, 8, 20001}, {8, 8, 1}})};
  op.errors = {
      error<ShapeError>("conv_transpose1d: weight must have the axes (C, O / groups, K), got (4, 3)",
                        [] { xgrad::conv_transpose1d(x(3, 5), x(4, 3)); }),
      error<ShapeError>(
          "conv_transpose1d: x must have 4 channels to fit weight (4, 3, 2) with 1 group, got x (3, 5)",
          [] { xgrad::conv_transpose1d(x(3, 5), x(4, 3, 2)); }),
      error<ValueError>(
          "conv_transpose1d: output_padding must be less than stride or dilation, got 2, stride 2 and "
          "dilation 1",
          [] { xgrad::conv_transpose1d(x(3, 5), x(3, 3, 2), {}, {.stride = 2, .output_padding = 2}); }),
      error<ShapeError>("conv_transpose1d: y must have elements, got padding 3 for a length of 6 without it",
                        [] { xgrad::conv_transpose1d(x(3, 5), x(3, 3, 2), {}, {.padding = 3}); })};
  return op;
}

Op conv_transpose2d_op() {
  Op op{"convolution.conv_transpose2d"};
  op.cases = {transposed_case({{2, 3, 4, 3}, {3, 2, 2, 3}}),
              transposed_case({{3, 2, 3}, {3, 2, 3, 1}, false}),
              transposed_case({.x = {1, 4, 3, 2},
                               .weight = {4, 1, 2, 3},
                               .stride = {2, 1},
                               .padding = {1, 0},
                               .dilation = {1, 2},
                               .output_padding = {1, 0},
                               .groups = 2}),
              transposed_case({{0, 2, 3, 3}, {2, 2, 2, 2}})};
  op.large = {
      transposed_case({.x = {3, 8, 31, 27}, .weight = {8, 10, 3, 3}, .stride = {2, 2}, .padding = {1, 1}})};
  op.errors = {
      error<ShapeError>("conv_transpose2d: bias must have shape (6) to fit weight (4, 3, 2, 2), got (4)",
                        [] { xgrad::conv_transpose2d(x(4, 5, 5), x(4, 3, 2, 2), x(4), {.groups = 2}); })};
  return op;
}

const Rows rows([] {
  return std::vector<Op>{conv1d_op(), conv2d_op(), conv_transpose1d_op(), conv_transpose2d_op()};
});

/// Numbers or a name.
template <class T>
ConvPadding padding_of(const Call<T>& c) {
  try {
    return c.dims("padding");
  } catch (const BadEntry&) {
    const std::string name = c.text("padding");
    if (name == "same") return ConvPadding::same;
    if (name == "valid") return ConvPadding::valid;
    throw ValueError("there is no padding '" + name + "'");
  }
}

template <class T>
xgrad::ConvOptions options_of(const Call<T>& c) {
  return {.stride = c.dims("stride"),
          .padding = padding_of(c),
          .dilation = c.dims("dilation"),
          .groups = c.integer("groups")};
}

template <class T>
xgrad::ConvTransposeOptions transposed_options_of(const Call<T>& c) {
  return {.stride = c.dims("stride"),
          .padding = c.dims("padding"),
          .output_padding = c.dims("output_padding"),
          .groups = c.integer("groups"),
          .dilation = c.dims("dilation")};
}

const Conformance conformance{
    {"conv1d", [](const auto& c) { return conv1d(c.x(), c.x(1), c.optional(2), options_of(c)); }},
    {"conv2d", [](const auto& c) { return conv2d(c.x(), c.x(1), c.optional(2), options_of(c)); }},
    {"conv_transpose1d",
     [](const auto& c) { return conv_transpose1d(c.x(), c.x(1), c.optional(2), transposed_options_of(c)); }},
    {"conv_transpose2d",
     [](const auto& c) { return conv_transpose2d(c.x(), c.x(1), c.optional(2), transposed_options_of(c)); }}};

/// A call whose kernel fits x.
Draw convolution_draw(const char* op, std::size_t axes, bool transposed) {
  return {op, [=](Drawing& d) {
            const Name x = d.numbers(d.shape(axes + 1, axes + 2));
            const Shape shape = d.shape(x);
            const std::size_t channels = shape[shape.size() - axes - 1];
            if (xgrad::element_count(shape) == 0) return;
            const std::size_t groups = channels % 2 == 0 && d.chance(0.4) ? 2 : 1,
                              out = groups * (1 + d.below(2));
            Shape weight = transposed ? Shape{channels, out / groups} : Shape{out, channels / groups};
            std::vector<std::ptrdiff_t> stride, padding, dilation, output_padding;
            for (std::size_t axis = shape.size() - axes; axis < shape.size(); ++axis) {
              const std::size_t kernel = 1 + d.below(std::min<std::size_t>(3, shape[axis]));
              weight.push_back(kernel);
              stride.push_back(static_cast<std::ptrdiff_t>(1 + d.below(2)));
              dilation.push_back(
                  kernel == 1 || kernel * 2 > shape[axis] + 1 ? 1 : d.one_of<std::ptrdiff_t>({1, 2}));
              padding.push_back(transposed && shape[axis] < 3 ? 0 : static_cast<std::ptrdiff_t>(d.below(2)));
              output_padding.push_back(stride.back() > 1 && d.chance(0.3) ? 1 : 0);
            }
            const Name bias = d.chance(0.5) ? d.numbers(Shape{out}) : Name();
            std::vector<Attr> attrs{{"stride", stride},
                                    {"padding", padding},
                                    {"dilation", dilation},
                                    {"groups", static_cast<std::ptrdiff_t>(groups)}};
            if (transposed) attrs.push_back({"output_padding", output_padding});
            if (!transposed && stride == std::vector<std::ptrdiff_t>(axes, 1) && d.chance(0.3))
              attrs[1].value = std::string("same");
            d.call(op, {x, d.numbers(weight), bias}, attrs);
          }};
}

const Draws draws{convolution_draw("conv1d", 1, false), convolution_draw("conv2d", 2, false),
                  convolution_draw("conv_transpose1d", 1, true),
                  convolution_draw("conv_transpose2d", 2, true)};

TEST(ConvolutionTest, OneNumberIsForBothAxes) {
  const Variable<double> image(naive::generated(
      {1, 2, 6, 7}, [](const Shape& i) { return static_cast<double>(i[1] * 42 + i[2] * 7 + i[3]); }));
  const Variable<double> weight(Array<double>(Shape{3, 2, 2, 2}, 1.0));
  const auto one = conv2d(image, weight, {}, {.stride = 2, .padding = 1, .dilation = 2});
  const auto two = conv2d(image, weight, {}, {.stride = {2, 2}, .padding = {1, 1}, .dilation = {2, 2}});
  EXPECT_EQ(one.value(), two.value());
}

TEST(ConvolutionTest, ValidIsNoPadding) {
  const Variable<float> line(Array<float>{{1, 2, 4, 8}}), weight(Array<float>{{{1, 10}}});
  EXPECT_EQ(conv1d(line, weight, {}, {.padding = ConvPadding::valid}).value(), (Array<float>{{21, 42, 84}}));
  EXPECT_EQ(conv1d(line, weight, {}, {.padding = ConvPadding::same}).value(),
            (Array<float>{{21, 42, 84, 8}}));
}

}  // namespace xgrad_tests::convolution_rows
