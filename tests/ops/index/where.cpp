// What there is to test of where.
#include <xgrad/ops/index/where.hpp>

#include <limits>
#include <tuple>

#include <gtest/gtest.h>

#include <xgrad/ops/reduce/reductions.hpp>

#include "../common/call.hpp"
#include "../common/draw.hpp"
#include "../common/naive.hpp"
#include "../common/op.hpp"
#include "../common/pointwise.hpp"

namespace xgrad_tests::where_rows {

using naive::at, naive::generated, naive::stretched, naive::Arguments;

Reference naive_where(Mask condition) {
  return [condition](const Arguments& x) {
    return generated(
        stretched(condition.shape(), stretched(x[0].shape(), x[1].shape())),
        [&](const Shape& index) { return at(condition, index) ? at(x[0], index) : at(x[1], index); });
  };
}

Op where_op() {
  Op op{"where"};
  const Mask mask = mask_of({2, 3}, {1, 0, 0, 1, 1, 0});
  for (const auto& [a, b] :
       {std::pair<Shape, Shape>{{2, 3}, {2, 3}}, {{3}, {2, 1}}, {{}, {4, 1, 1}}, {{1}, {}}}) {
    op.cases.push_back(make_case(
        {a, b}, [mask](const auto& x) { return xgrad::where(mask, x[0], x[1]); }, naive_where(mask)));
  }
  for (const auto& [condition, a, b] : {std::tuple<Shape, Shape, Shape>{plane, plane, plane},
                                        {plane, {}, plane},
                                        {plane, {403}, {517, 1}},
                                        {wide, wide, {2, 1}},
                                        {{2, 1}, wide, {140001}}}) {
    op.large.push_back(late_case({a, b}, [condition = condition] {
      const Mask chosen = scattered_mask(condition);
      return make_case(
          {}, [chosen](const auto& x) { return xgrad::where(chosen, x[0], x[1]); }, naive_where(chosen));
    }));
  }
  op.errors = {error<ShapeError>("where: shapes must broadcast, got a (2) and b (3)",
                                 [mask] { xgrad::where(mask, x(2), x(3)); }),
               error<ShapeError>("where: shapes must broadcast, got condition (2, 3) and a and b (2)",
                                 [mask] { xgrad::where(mask, x(2), x(2)); })};
  return op;
}

const Rows rows([] {
  Op nan_to_num = elementwise_op(
      "where", "nan_to_num", [](const auto& x) { return xgrad::nan_to_num(x[0]); },
      [](double x) { return x; });
  nan_to_num.passes_nan_on = false;
  return std::vector<Op>{where_op(), nan_to_num};
});

const Conformance conformance{
    {"where", [](const auto& c) { return where(c.mask(0), c.x(1), c.x(2)); }},
    {"nan_to_num",
     [](const auto& c) { return nan_to_num(c.x(), c.scalar("nan"), c.bound("posinf"), c.bound("neginf")); }}};

void draw_where(Drawing& d) {
  const auto [a, b] = broadcasting(d);
  const Name& wide = d.rank(a) > d.rank(b) ? a : b;
  d.call("where", {d.mask(d.narrowed(d.shape(wide))), a, b});
}

/// Of numbers, and of a constant divided by 0.
void draw_nan_to_num(Drawing& d) {
  Name x = d.numbers();
  if (d.chance(0.5)) {
    const Shape shape = d.shape(x);
    const Name none = drawn(d, "div", {d.constant(shape), d.constant(shape, {0, 0})});
    x = drawn(d, "where", {d.mask(shape), x, none});
  }
  d.call("nan_to_num", {x}, {{"nan", 1.5}, {"posinf", d.one_of({2.0, 3.0})}, {"neginf", -2.0}});
}

const Draws draws{{"where", draw_where}, {"nan_to_num", draw_nan_to_num}};

TEST(WhereTest, WhatIsNoNumberIsReplacedWithoutAGradient) {
  const Variable<float> x(Array<float>{1, nan, inf, -inf}, true);
  const float most = std::numeric_limits<float>::max();
  EXPECT_EQ(nan_to_num(x).value(), (Array<float>{1, 0, most, -most}));
  const Variable<float> y = nan_to_num(x, 5, 6, -7);
  EXPECT_EQ(y.value(), (Array<float>{1, 5, 6, -7}));
  EXPECT_EQ(grad(sum(y), {x})[0].value(), (Array<float>{1, 0, 0, 0}));
}

}  // namespace xgrad_tests::where_rows
