// What there is to test of interpolate.
#include <xgrad/ops/window/interpolate.hpp>

#include <algorithm>
#include <cmath>

#include <gtest/gtest.h>

#include "../common/call.hpp"
#include "../common/draw.hpp"
#include "../common/naive.hpp"
#include "../common/op.hpp"

namespace xgrad_tests::interpolate_rows {

using naive::Arguments, naive::Numbers;
using xgrad::InterpolateMode;

struct Sample {
  Shape x, size;
  InterpolateMode mode;
  bool align_corners = false;
};

/// Keys's cubic convolution, by its two polynomials.
double cubic(double d) {
  const double a = -0.75;
  d = std::abs(d);
  if (d <= 1) return (a + 2) * d * d * d - (a + 3) * d * d + 1;
  return d < 2 ? a * d * d * d - 5 * a * d * d + 8 * a * d - 4 * a : 0;
}

/// The weight of element k of a line of `length` in element i of one of `count`.
double weight(const Sample& s, std::size_t i, std::size_t k, std::size_t length, std::size_t count) {
  const double last = static_cast<double>(length) - 1, number = static_cast<double>(i);
  if (s.mode == InterpolateMode::nearest) return k == i * length / count ? 1 : 0;
  double place = (number + 0.5) * static_cast<double>(length) / static_cast<double>(count) - 0.5;
  if (s.align_corners) place = count == 1 ? 0 : number * last / static_cast<double>(count - 1);
  double sum = 0;
  for (int step = -3; step <= 3; ++step) {  // elements beyond the ends are the outermost ones
    const double neighbour = std::floor(place) + step;
    if (std::clamp(neighbour, 0.0, last) != static_cast<double>(k)) continue;
    const double d = std::abs(place - neighbour);
    sum += s.mode == InterpolateMode::bicubic ? cubic(d) : std::max(0.0, 1 - d);
  }
  return sum;
}

Reference naive_interpolate(const Sample& s) {
  return [=](const Arguments& x) {
    Numbers y = x[0];
    for (std::size_t axis = 2; axis < y.dimension(); ++axis) {
      const Numbers before = y;
      const std::size_t length = before.shape()[axis], count = s.size[(axis - 2) % s.size.size()];
      Numbers weights = Numbers::from_shape({count, length});
      for (std::size_t i = 0; i < count; ++i)
        for (std::size_t k = 0; k < length; ++k) weights(i, k) = weight(s, i, k, length, count);
      y = naive::generated(naive::with(before.shape(), axis, count), [&](const Shape& index) {
        double sum = 0;
        for (std::size_t k = 0; k < length; ++k) {
          const double w = weights(index[axis], k);
          if (w != 0) sum += w * naive::at(before, naive::with(index, axis, k));
        }
        return sum;
      });
    }
    return y;
  };
}

Case sample_case(const Sample& s) {
  return make_case(
      {s.x},
      [s](const auto& x) {
        return xgrad::interpolate(x[0], s.size, {.mode = s.mode, .align_corners = s.align_corners});
      },
      naive_interpolate(s));
}

std::vector<Case> cases(const std::vector<Sample>& samples) {
  std::vector<Case> all;
  for (const Sample& sample : samples) all.push_back(sample_case(sample));
  return all;
}

const Rows rows([] {
  Op op{"interpolate", cases({{{2, 3, 4}, {7}, InterpolateMode::nearest},
                              {{2, 3, 7}, {3}, InterpolateMode::nearest},
                              {{1, 2, 3, 4}, {5, 2}, InterpolateMode::nearest},
                              {{1, 2, 3, 4}, {6}, InterpolateMode::nearest},
                              {{2, 3, 4}, {7}, InterpolateMode::linear},
                              {{2, 3, 4}, {3}, InterpolateMode::linear, true},
                              {{2, 3, 4}, {1}, InterpolateMode::linear, true},
                              {{1, 2, 3, 5}, {5, 2}, InterpolateMode::bilinear},
                              {{1, 2, 3, 5}, {5, 2}, InterpolateMode::bilinear, true},
                              {{1, 2, 4, 3}, {7, 5}, InterpolateMode::bicubic},
                              {{1, 2, 5, 6}, {3, 9}, InterpolateMode::bicubic, true},
                              {{0, 2, 3}, {4}, InterpolateMode::linear}})};
  // of short lines, as where an element lies is rounded to the last bit of its number, as PyTorch does
  op.large = cases({{{61, 7, 13, 11}, {31, 17}, InterpolateMode::bilinear},
                    {{61, 7, 13, 11}, {9, 17}, InterpolateMode::bicubic},
                    {{5, 7, 301}, {9001}, InterpolateMode::nearest}});
  op.errors = {error<ShapeError>(
                   "interpolate: x must have the axes (N, C, L) with elements for the mode linear, got x "
                   "(2, 3, 4, 5)",
                   [] { xgrad::interpolate(x(2, 3, 4, 5), 2, {.mode = InterpolateMode::linear}); }),
               error<ShapeError>(
                   "interpolate: x must have the axes (N, C, H, W) with elements for the mode bicubic, got x "
                   "(2, 3, 4)",
                   [] { xgrad::interpolate(x(2, 3, 4), 2, {.mode = InterpolateMode::bicubic}); }),
               error<ShapeError>(
                   "interpolate: x must have the axes (N, C, L) or (N, C, H, W) with elements for the mode "
                   "nearest, got x (2, 3, 0)",
                   [] { xgrad::interpolate(x(2, 3, 0), 2); }),
               error<ValueError>(
                   "interpolate: mode must be one of 4 values, got number -1",
                   [] { xgrad::interpolate(x(2, 3, 4), 2, {.mode = static_cast<InterpolateMode>(-1)}); }),
               error<ValueError>(
                   "interpolate: size must be one number or 2, at least 1 and at most 2147483647, got (2, 0)",
                   [] {
                     xgrad::interpolate(x(2, 3, 4, 5), {2, 0});
                   }),
               error<ValueError>("interpolate: align_corners is not for the mode nearest",
                                 [] { xgrad::interpolate(x(2, 3, 4), 2, {.align_corners = true}); })};
  return std::vector<Op>{op};
});

InterpolateMode mode_of(const std::string& name) {
  if (name == "nearest") return InterpolateMode::nearest;
  if (name == "linear") return InterpolateMode::linear;
  if (name == "bilinear") return InterpolateMode::bilinear;
  if (name == "bicubic") return InterpolateMode::bicubic;
  throw ValueError("there is no mode '" + name + "'");
}

const Conformance conformance{
    {"interpolate", [](const auto& c) {
       return interpolate(c.x(), c.dims("size"),
                          {.mode = mode_of(c.text("mode")),
                           .align_corners = c.has_attr("align_corners") && c.flag("align_corners")});
     }}};

void draw_interpolate(Drawing& d) {
  const Name x = d.numbers(d.shape(3, 4));
  const std::size_t axes = d.rank(x) - 2;
  if (xgrad::element_count(d.shape(x)) == 0) return;
  std::vector<std::ptrdiff_t> size;
  for (std::size_t i = 0; i < axes; ++i) size.push_back(static_cast<std::ptrdiff_t>(1 + d.below(6)));
  const std::string mode = axes == 1 ? d.one_of<std::string>({"nearest", "linear"})
                                     : d.one_of<std::string>({"nearest", "bilinear", "bicubic"});
  std::vector<Attr> attrs{{"size", size}, {"mode", mode}, {"align_corners", nullptr}};
  if (mode != "nearest") attrs.back().value = d.chance(0.5);
  d.call("interpolate", {x}, attrs);
}

const Draws draws{{"interpolate", draw_interpolate}};

/// Element 41 of 82 is at 1, or just before where the ratio of the lengths is rounded down.
TEST(InterpolateTest, TheNearestElementIsThatOfPyTorch) {
  EXPECT_EQ(interpolate(Variable<float>(Array<float>{{{0, 1}}}), 82).value()(0, 0, 41), 0);
  EXPECT_EQ(interpolate(Variable<double>(Array<double>{{{0, 1}}}), 82).value()(0, 0, 41), 1);
}

TEST(InterpolateTest, AnElementOfWeightZeroIsNotRead) {
  const Variable<float> row(Array<float>{{{1, inf, 2}}}, true);
  const Array<float> same = row.value();
  const Variable<float> y = interpolate(row, 3, {.mode = InterpolateMode::linear});
  EXPECT_EQ(y.value(), same);
  EXPECT_EQ(xgrad::grad(y, {row}, {.seed = Variable<float>(Array<float>{{{1, 1, 1}}})})[0].value(),
            (Array<float>{{{1, 1, 1}}}));
  const Array<float> image{{{{1, inf}, {2, 3}}}};
  for (const auto mode : {InterpolateMode::bilinear, InterpolateMode::bicubic})
    EXPECT_EQ(interpolate(Variable<float>(image), 2, {.mode = mode}).value(), image);
}

}  // namespace xgrad_tests::interpolate_rows
