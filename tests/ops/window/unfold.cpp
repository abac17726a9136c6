// What there is to test of unfold and fold.
#include <xgrad/ops/window/unfold.hpp>

#include <gtest/gtest.h>

#include "../common/call.hpp"
#include "../common/draw.hpp"
#include "../common/naive.hpp"
#include "../common/op.hpp"

namespace xgrad_tests::unfold_rows {

using naive::Arguments, naive::Numbers;
using xgrad::Dims;

struct Sample {
  Shape images;
  Shape kernel;
  std::size_t stride[2] = {1, 1}, padding[2] = {0, 0}, dilation[2] = {1, 1};

  xgrad::UnfoldOptions options() const {
    return {.dilation = Dims(dilation[0], dilation[1]),
            .padding = Dims(padding[0], padding[1]),
            .stride = Dims(stride[0], stride[1])};
  }
  std::size_t windows(std::size_t i) const {
    return (images[images.size() - 2 + i] + 2 * padding[i] - dilation[i] * (kernel[i] - 1) - 1) / stride[i] +
           1;
  }
  /// The shape of the columns.
  Shape columns() const {
    Shape shape(images.begin(), images.end() - 1);
    shape[shape.size() - 2] *= kernel[0] * kernel[1];
    shape.back() = windows(0) * windows(1);
    return shape;
  }
};

/// Calls f(image, column) with the numbers of elements that are the same.
template <class F>
void for_each_element(const Sample& s, const F& f) {
  const std::size_t rows = s.images[s.images.size() - 2], cols = s.images.back();
  const std::size_t planes = rows * cols == 0 ? 0 : xgrad::element_count(s.images) / (rows * cols);
  for (std::size_t plane = 0, column = 0; plane < planes; ++plane) {
    for (std::size_t k = 0; k < s.kernel[0] * s.kernel[1]; ++k) {
      for (std::size_t w = 0; w < s.windows(0) * s.windows(1); ++w, ++column) {
        const std::size_t row = w / s.windows(1) * s.stride[0] + k / s.kernel[1] * s.dilation[0];
        const std::size_t col = w % s.windows(1) * s.stride[1] + k % s.kernel[1] * s.dilation[1];
        if (row < s.padding[0] || row >= rows + s.padding[0] || col < s.padding[1] ||
            col >= cols + s.padding[1])
          continue;
        f((plane * rows + row - s.padding[0]) * cols + col - s.padding[1], column);
      }
    }
  }
}

Case unfold_case(const Sample& s) {
  return make_case(
      {s.images}, [s](const auto& x) { return xgrad::unfold(x[0], s.kernel, s.options()); },
      [s](const Arguments& x) {
        Numbers y = naive::filled(s.columns(), 0);
        for_each_element(
            s, [&](std::size_t image, std::size_t column) { y.data()[column] = x[0].data()[image]; });
        return y;
      });
}

Case fold_case(const Sample& s) {
  const Shape size{s.images[s.images.size() - 2], s.images.back()};
  return make_case(
      {s.columns()}, [=](const auto& x) { return xgrad::fold(x[0], size, s.kernel, s.options()); },
      [s](const Arguments& x) {
        Numbers y = naive::filled(s.images, 0);
        for_each_element(
            s, [&](std::size_t image, std::size_t column) { y.data()[image] += x[0].data()[column]; });
        return y;
      });
}

std::vector<Sample> samples() {
  return {{{2, 3, 4, 5}, {2, 3}},
          {{2, 5, 4}, {3, 1}, {2, 1}, {1, 0}},
          {{1, 2, 6, 5}, {2, 2}, {1, 2}, {0, 1}, {2, 1}},
          {{2, 2, 3, 3}, {1, 1}},
          {{0, 2, 3, 3}, {2, 2}}};
}

std::vector<Case> cases(Case (*make)(const Sample&), const std::vector<Sample>& of) {
  std::vector<Case> all;
  for (const Sample& sample : of) all.push_back(make(sample));
  return all;
}

const std::vector<Sample> large{{{3, 4, 61, 53}, {3, 3}, {1, 1}, {1, 1}}, {{2, 5, 83, 71}, {2, 3}, {1, 2}}};

const Rows rows([] {
  return std::vector<Op>{
      {"unfold.unfold",
       cases(unfold_case, samples()),
       {error<ValueError>("unfold: kernel_size must have at most 2147483647 elements, got (50000)",
                          [] { xgrad::unfold(x(2, 3, 4), 50000, {.padding = 50000}); }),
        error<ShapeError>("unfold: a window must not be longer than the image with its padding, got (3, 4), "
                          "kernel_size (4, 2) and dilation (1)",
                          [] {
                            xgrad::unfold(x(2, 3, 4), {4, 2});
                          }),
        error<ShapeError>(
            "unfold: x must have the axes (channels, rows, cols) or (batch, channels, rows, cols), got "
            "(3, 4)",
            [] { xgrad::unfold(x(3, 4), 2); })},
       cases(unfold_case, large)},
      {"unfold.fold",
       cases(fold_case, samples()),
       {error<ShapeError>(
            "fold: x must have columns of a multiple of 4 elements, one for each of 6 windows, got x "
            "(2, 6, 6)",
            [] {
              xgrad::fold(x(2, 6, 6), {3, 4}, 2);
            }),
        error<ShapeError>(
            "fold: x must have columns of a multiple of 4 elements, one for each of 6 windows, got x "
            "(4, 5)",
            [] {
              xgrad::fold(x(4, 5), {3, 4}, 2);
            }),
        error<ValueError>(
            "fold: output_size must be one number or 2, at least 1 and at most 2147483647, got (0, 4)",
            [] {
              xgrad::fold(x(4, 5), {0, 4}, 2);
            })},
       cases(fold_case, large)}};
});

template <class T>
xgrad::UnfoldOptions options_of(const Call<T>& c) {
  return {.dilation = c.dims("dilation"), .padding = c.dims("padding"), .stride = c.dims("stride")};
}

const Conformance conformance{
    {"unfold", [](const auto& c) { return unfold(c.x(), c.dims("kernel_size"), options_of(c)); }},
    {"fold",
     [](const auto& c) { return fold(c.x(), c.dims("output_size"), c.dims("kernel_size"), options_of(c)); }}};

using Lengths = std::vector<std::ptrdiff_t>;

/// Arguments for images with these rows and columns.
std::vector<Attr> drawn_windows(Drawing& d, const Shape& size) {
  Lengths kernel, padding, stride, dilation;
  for (const std::size_t length : size) {
    kernel.push_back(static_cast<std::ptrdiff_t>(1 + d.below(std::min<std::size_t>(2, length))));
    padding.push_back(static_cast<std::ptrdiff_t>(d.below(2)));
    stride.push_back(static_cast<std::ptrdiff_t>(1 + d.below(2)));
    dilation.push_back(length > 2 ? static_cast<std::ptrdiff_t>(1 + d.below(2)) : 1);
  }
  return {{"kernel_size", kernel}, {"dilation", dilation}, {"padding", padding}, {"stride", stride}};
}

void draw_unfold(Drawing& d) {
  const Name x = d.numbers(d.shape(3, 4));
  const Shape shape = d.shape(x);
  if (xgrad::element_count(shape) == 0) return;
  d.call("unfold", {x}, drawn_windows(d, Shape(shape.end() - 2, shape.end())));
}

/// Of the columns of a new image, as others seldom fit.
void draw_fold(Drawing& d) {
  const Shape shape = d.shape(3, 4);
  if (xgrad::element_count(shape) == 0) return;
  const std::vector<Attr> attrs = drawn_windows(d, Shape(shape.end() - 2, shape.end()));
  const Array<double> columns = d.result("unfold", {d.constant(shape)}, attrs);
  std::vector<Attr> all = attrs;
  all.push_back({"output_size", listed(Shape(shape.end() - 2, shape.end()))});
  d.call("fold", {d.numbers(columns.shape())}, all);
}

const Draws draws{{"unfold", draw_unfold}, {"fold", draw_fold}};

TEST(UnfoldTest, FoldOfUnfoldCountsTheWindows) {
  const Variable<float> ones(Array<float>(Shape{1, 3, 3}, 1.0f));
  EXPECT_EQ(fold(unfold(ones, 2), 3, 2).value(), (Array<float>{{{1, 2, 1}, {2, 4, 2}, {1, 2, 1}}}));
}

}  // namespace xgrad_tests::unfold_rows
