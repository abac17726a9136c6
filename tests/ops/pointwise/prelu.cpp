// What there is to test of prelu.
#include <xgrad/ops/pointwise/prelu.hpp>
#include <xgrad/ops/reduce/reductions.hpp>

#include <gtest/gtest.h>

#include "../common/call.hpp"
#include "../common/draw.hpp"
#include "../common/naive.hpp"
#include "../common/op.hpp"

namespace xgrad_tests::prelu_rows {

using naive::Arguments, naive::at;

std::vector<Case> cases(const std::vector<std::pair<Shape, std::size_t>>& samples) {
  std::vector<Case> all;
  for (const auto& [shape, channels] : samples) {
    all.push_back(make_case(
        {Input(shape, {-2, 2, 0.01}), {channels}}, [](const auto& x) { return xgrad::prelu(x[0], x[1]); },
        [](const Arguments& x) {
          return naive::generated(x[0].shape(), [&](const Shape& index) {
            const double element = at(x[0], index), slope = x[1].data()[x[1].size() == 1 ? 0 : index[1]];
            return element > 0 ? element : slope * element;
          });
        }));
  }
  return all;
}

const Rows rows([] {
  return std::vector<Op>{
      {"prelu",
       cases({{{2, 3}, 3}, {{2, 3, 4}, 3}, {{2, 3, 4}, 1}, {{5}, 1}, {{}, 1}, {{0, 2}, 2}}),
       {error<ShapeError>("prelu: weight must have shape (3), (1) or () to fit x (2, 3), got (2)",
                          [] { xgrad::prelu(x(2, 3), x(2)); }),
        error<ShapeError>("prelu: weight must have shape (1), (1) or () to fit x (3), got (3)",
                          [] { xgrad::prelu(x(3), x(3)); })},
       cases({{{7, 5, 67, 61}, 5}, {plane, 1}})}};
});

const Conformance conformance{{"prelu", [](const auto& c) { return prelu(c.x(), c.x(1)); }}};

void draw_prelu(Drawing& d) {
  const Name x = d.numbers();
  if (!Drawing::is_clear_of(0, d.value(x))) return;
  d.call("prelu", {x, d.numbers(Shape{d.rank(x) < 2 || d.chance(0.5) ? 1 : d.shape(x)[1]})});
}

const Draws draws{{"prelu", draw_prelu}};

TEST(PreluTest, OneWeightMayHaveNoAxis) {
  const Variable<double> x(Array<double>{{1, -2}, {-3, 4}}), weight(0.5, true);
  const Variable<double> y = prelu(x, weight);
  EXPECT_EQ(y.value(), (Array<double>{{1, -1}, {-1.5, 4}}));
  sum(y).backward();
  EXPECT_EQ(weight.grad().shape(), Shape{});
  EXPECT_EQ(weight.grad().item(), -5);
  EXPECT_EQ(prelu(Variable<double>(-2.0), weight).item(), -1);
}

TEST(PreluTest, ZeroIsNegativeAndAnInfinityLeavesNoNan) {
  const Variable<float> x(Array<float>{0, inf, -2}, true), weight(Array<float>{2}, true);
  const Variable<float> y = prelu(x, weight);
  EXPECT_EQ(y.value(), (Array<float>{0, inf, -4}));
  y.backward(Variable<float>(Array<float>{3, 5, 7}));
  EXPECT_EQ(x.grad().value(), (Array<float>{6, 5, 14}));
  EXPECT_EQ(weight.grad().value(), (Array<float>{-14}));
}

}  // namespace xgrad_tests::prelu_rows
