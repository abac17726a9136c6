// What there is to test of linear and linear_relu.
#include <xgrad/ops/product/linear.hpp>

#include <algorithm>
#include <cmath>

#include <gtest/gtest.h>

#include <xgrad/ops/reduce/reductions.hpp>

#include "../common/call.hpp"
#include "../common/draw.hpp"
#include "../common/naive.hpp"
#include "../common/op.hpp"

namespace xgrad_tests::linear_rows {

Op linear_op() {
  const std::vector<std::vector<Input>> lists = {
      {{2, 3}, {4, 3}, {4}},    {{2, 3}, {4, 3}},      {{3}, {4, 3}, {4}},
      {{2, 5, 3}, {4, 3}, {4}}, {{3, 3}, {3, 3}, {3}}, {{0, 3}, {4, 3}, {4}},
      {{2, 0}, {4, 0}, {4}},    {{1, 1}, {1, 1}, {1}}, {{17, 19}, {23, 19}, {23}}};
  const auto f = [](const auto& x) {
    return x.size() > 2 ? xgrad::linear(x[0], x[1], x[2]) : xgrad::linear(x[0], x[1]);
  };
  std::vector<Case> cases = make_cases(lists, f, naive::linear());
  for (Case& vector : make_cases({{{2, 3}, {3}}, {{3}, {3}}, {{2, 0, 3}, {3}}}, f, naive::matmul()))
    cases.push_back(std::move(vector));
  return {
      "linear",
      std::move(cases),
      {error<ShapeError>("linear: the last axis of x must be weight's last, got x (2, 3) and weight (4, 5)",
                         [] { xgrad::linear(x(2, 3), x(4, 5)); }),
       error<ShapeError>("linear: the last axis of x must be weight's last, got x () and weight (4, 5)",
                         [] { xgrad::linear(x(), x(4, 5)); }),
       error<ShapeError>("linear: weight must have the axes (out, in) or (in), got ()",
                         [] { xgrad::linear(x(2, 3), x()); }),
       error<ShapeError>("linear: weight must have the axes (out, in) or (in), got (1, 1, 3)",
                         [] { xgrad::linear(x(2, 3), x(1, 1, 3)); }),
       error<ShapeError>("linear: a weight (in) takes no bias, got bias (1)",
                         [] { xgrad::linear(x(2, 3), x(3), x(1)); }),
       error<ShapeError>("linear: the last axis of x must be weight's last, got x (2, 3) and weight (2)",
                         [] { xgrad::linear(x(2, 3), x(2)); }),
       error<ShapeError>("linear: bias must have shape (4) to fit weight (4, 3), got (3)",
                         [] { xgrad::linear(x(2, 3), x(4, 3), x(3)); }),
       error<ShapeError>("linear: bias must have shape (4) to fit weight (4, 3), got (1, 4)",
                         [] { xgrad::linear(x(2, 3), x(4, 3), x(1, 4)); })},
      make_cases({{{2101, 5}, {43, 5}, {43}}, {{211, 20}, {67, 20}}}, f, naive::linear())};
}

Op linear_relu_op() {
  const auto f = [](const auto& x) {
    return x.size() > 2 ? xgrad::linear_relu(x[0], x[1], x[2]) : xgrad::linear_relu(x[0], x[1], {});
  };
  const Reference reference = [](const auto& x) {
    auto y = naive::linear()(x);
    for (double& element : y) element = std::max(element, 0.0);
    return y;
  };
  return {"linear.linear_relu",
          make_cases({{{2, 3}, {4, 3}, {4}},
                      {{2, 3}, {4, 3}},
                      {{3}, {4, 3}, {4}},
                      {{2, 5, 3}, {4, 3}, {4}},
                      {{0, 3}, {4, 3}, {4}},
                      {{2, 0}, {4, 0}, {4}},
                      {{17, 19}, {23, 19}, {23}}},
                     f, reference),
          {error<ShapeError>("linear_relu: weight must have the axes (out, in), got (3)",
                             [] { xgrad::linear_relu(x(2, 3), x(3), {}); }),
           error<ShapeError>(
               "linear_relu: the last axis of x must be weight's last, got x (2, 3) and weight (4, 5)",
               [] { xgrad::linear_relu(x(2, 3), x(4, 5), x(4)); }),
           error<ShapeError>("linear_relu: bias must have shape (4) to fit weight (4, 3), got (3)",
                             [] { xgrad::linear_relu(x(2, 3), x(4, 3), x(3)); })},
          make_cases({{{2101, 5}, {43, 5}, {43}}}, f, reference)};
}

const Rows rows([] { return std::vector<Op>{linear_op(), linear_relu_op()}; });

const Conformance conformance{
    {"linear", [](const auto& c) { return linear(c.x(), c.x(1), c.optional(2)); }},
    {"linear_relu", [](const auto& c) { return linear_relu(c.x(), c.x(1), c.optional(2)); }}};

/// x, weight and perhaps a bias.
std::vector<Name> draw_layer(Drawing& d) {
  const Name x = d.numbers(1);
  const std::size_t out = d.length();
  return {x, d.numbers(Shape{out, d.shape(x).back()}), d.chance(0.7) ? d.numbers(Shape{out}) : Name()};
}

void draw_linear(Drawing& d) {
  if (d.chance(0.8)) {
    d.call("linear", draw_layer(d));
  } else {
    const Name x = d.numbers(1);
    d.call("linear", {x, d.numbers(Shape{d.shape(x).back()}), ""});
  }
}

void draw_linear_relu(Drawing& d) {
  const std::vector<Name> layer = draw_layer(d);
  if (d.is_clear_of(0, d.result("linear", layer))) d.call("linear_relu", layer);
}

const Draws draws{{"linear", draw_linear}, {"linear_relu", draw_linear_relu}};

/// Whether the bias is added by the fused kernel or not, nan is kept, as by PyTorch's relu.
TEST(LinearReluTest, NanStaysNanAndPassesItsGradient) {
  const Variable<float> x(Array<float>{{1, nan}, {1, -2}}, true), weight(Array<float>{{1, 0}, {0, 1}}, true),
      bias(Array<float>{-3, 1}, true);
  const Variable<float> y = linear_relu(x, weight, bias);
  EXPECT_TRUE(std::isnan(y.value()(0, 0)) && std::isnan(y.value()(0, 1)));
  EXPECT_EQ(y.value()(1, 0), 0);
  EXPECT_EQ(y.value()(1, 1), 0);
  EXPECT_EQ(grad(sum(y), {bias})[0].value(), (Array<float>{1, 1}));
  EXPECT_TRUE(std::isnan(linear_relu(x, weight, {}).value()(0, 0)));
  EXPECT_TRUE(
      std::isnan(linear_relu(x.detach() * 0.0, weight, Variable<float>(Array<float>{nan, 1})).value()(1, 0)));
}

TEST(LinearReluTest, ASumOfZeroHasNoGradient) {
  const Variable<float> x(Array<float>{{1, 2}}, true), weight(Array<float>{{1, 0}, {0, 1}}, true),
      bias(Array<float>{-1, -1}, true);
  const Variable<float> y = linear_relu(x, weight, bias);
  EXPECT_EQ(y.value(), (Array<float>{{0, 1}}));
  EXPECT_EQ(grad(sum(y), {x})[0].value(), (Array<float>{{0, 1}}));
}

}  // namespace xgrad_tests::linear_rows
