// What there is to test of rms_norm.
#include <xgrad/ops/norm/rms_norm.hpp>

#include <algorithm>
#include <cmath>
#include <limits>

#include <gtest/gtest.h>

#include "../common/call.hpp"
#include "../common/draw.hpp"
#include "../common/naive.hpp"
#include "../common/op.hpp"

namespace xgrad_tests::rms_norm_rows {

using naive::at, naive::generated, naive::Numbers, naive::Arguments;

struct Sample {
  Shape shape;
  std::size_t axes;
  bool weight;
  double eps, offset = 0;
};

Reference naive_rms_norm(const Sample& sample) {
  return [=](const Arguments& x) {
    const Shape& shape = x[0].shape();
    const auto axes = static_cast<std::ptrdiff_t>(sample.axes);
    const double count = static_cast<double>(xgrad::element_count(Shape(shape.end() - axes, shape.end())));
    Shape kept = shape;
    std::fill(kept.end() - axes, kept.end(), 1);
    const Numbers squares = naive::sum_over(
        generated(shape, [&](const Shape& index) { return at(x[0], index) * at(x[0], index); }), kept);
    return generated(shape, [&](const Shape& index) {
      const double y = at(x[0], index) / std::sqrt(at(squares, index) / count + sample.eps);
      return sample.weight ? y * (at(x[1], index) + sample.offset) : y;
    });
  };
}

std::vector<Case> cases(const std::vector<Sample>& samples) {
  std::vector<Case> all;
  for (const Sample& sample : samples) {
    const Shape inner(sample.shape.end() - static_cast<std::ptrdiff_t>(sample.axes), sample.shape.end());
    std::vector<Input> inputs{sample.shape};
    if (sample.weight) inputs.push_back(inner);
    const auto call = [=](const auto& x) {
      const typename std::decay_t<decltype(x)>::value_type none;
      return xgrad::rms_norm(x[0], inner, sample.weight ? x[1] : none,
                             {.eps = sample.eps, .offset = sample.offset});
    };
    all.push_back(make_case(inputs, call, naive_rms_norm(sample)));
  }
  return all;
}

const Rows rows([] {
  Op op{"rms_norm",
        cases({{{2, 3}, 1, true, 1e-5},
               {{2, 3}, 1, false, 1e-5},
               {{2, 3}, 1, true, 0.1, 1},
               {{2, 3, 4}, 2, true, 1e-5},
               {{4}, 1, true, 1e-5, 1},
               {{3, 1}, 1, true, 0.1},
               {{0, 3}, 1, true, 1e-5},
               {{5, 33}, 1, true, 1e-5, 0.5}}),
        {error<ShapeError>("rms_norm: the last axes of x must be normalized_shape (4), got x (2, 3)",
                           [] { xgrad::rms_norm(x(2, 3), 4); }),
         error<ValueError>("rms_norm: eps must be at least 0, got nan",
                           [] { xgrad::rms_norm(x(2, 3), 3, {}, {.eps = std::nan("")}); }),
         error<ShapeError>("rms_norm: weight must have normalized_shape (3), got (2)",
                           [] { xgrad::rms_norm(x(2, 3), 3, x(2)); })},
        cases({{{517, 203}, 1, true, 1e-5, 1}, {{3, 50001}, 1, true, 1e-5}, {{30001, 5}, 1, false, 0.1}})};
  return std::vector<Op>{op};
});

const Conformance conformance{{"rms_norm", [](const auto& c) {
                                 xgrad::RMSNormOptions options{.offset = c.number("offset", 0)};
                                 if (c.has_attr("eps")) options.eps = c.number("eps");
                                 return rms_norm(c.x(), c.dims("normalized_shape"), c.optional(1), options);
                               }}};

void draw_rms_norm(Drawing& d) {
  const Name x = d.numbers(1);
  const Shape& shape = d.shape(x);
  const Shape inner(shape.end() - static_cast<std::ptrdiff_t>(1 + d.below(shape.size())), shape.end());
  const Name weight = d.chance(0.7) ? d.numbers(inner) : Name();
  d.call("rms_norm", {x, weight},
         {{"normalized_shape", std::vector<std::ptrdiff_t>(inner.begin(), inner.end())},
          {"eps", d.one_of({1e-5, 1e-2, 0.3})},
          {"offset", d.one_of({0.0, 1.0})}});
}

const Draws draws{{"rms_norm", draw_rms_norm}};

TEST(RMSNormTest, EpsIsThatOfTheTypeUnlessGiven) {
  const auto expected = [](double eps) { return 1e-8 / std::sqrt(1e-16 + eps); };
  EXPECT_FLOAT_EQ(rms_norm(Variable<float>(Array<float>{1e-8f}), 1).value()(0),
                  static_cast<float>(expected(std::numeric_limits<float>::epsilon())));
  EXPECT_DOUBLE_EQ(rms_norm(Variable<double>(Array<double>{1e-8}), 1).value()(0),
                   expected(std::numeric_limits<double>::epsilon()));
}

TEST(RMSNormTest, ASquareMayOverflow) {
  const Variable<float> y = rms_norm(Variable<float>(Array<float>{3e38f, 1}), 2);
  EXPECT_FLOAT_EQ(y.value()(0), std::sqrt(2.0f));
  EXPECT_NEAR(y.value()(1), 0, 1e-37);
}

TEST(RMSNormTest, RowsOfZerosHaveFiniteGradients) {
  const Variable<float> zeros(Array<float>{{0, 0, 0}}, true);
  const Variable<float> y = rms_norm(zeros, 3, {}, {.eps = 0.25});
  EXPECT_EQ(y.value(), (Array<float>{{0, 0, 0}}));
  y.backward(Variable<float>(Array<float>{{1, 2, 3}}));
  EXPECT_EQ(zeros.grad().value(), (Array<float>{{2, 4, 6}}));
}

TEST(RMSNormTest, TheOffsetHasNoEffectWithoutAWeight) {
  const Variable<float> x(Array<float>{{1, 2, 4}});
  EXPECT_EQ(rms_norm(x, 3, {}, {.offset = 1}).value(), rms_norm(x, 3).value());
}

}  // namespace xgrad_tests::rms_norm_rows
