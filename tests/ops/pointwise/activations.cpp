// What there is to test of the further activation functions.
#include <xgrad/ops/pointwise/activations.hpp>

#include <algorithm>
#include <cmath>
#include <string>

#include <gtest/gtest.h>

#include <xgrad/ops/reduce/reductions.hpp>

#include "../common/expect_near.hpp"
#include "../common/pointwise.hpp"

namespace xgrad_tests::activations_rows {

const Rows rows([] {
  std::vector<Op> all = {
      elementwise_op(
          "activations", "mish", [](const auto& x) { return xgrad::mish(x[0]); },
          [](double x) -> double { return x * std::tanh(std::log1p(std::exp(x))); }, {-8, 8, 0}),
      elementwise_op(
          "activations", "hardswish", [](const auto& x) { return xgrad::hardswish(x[0]); },
          [](double x) -> double { return x * std::clamp(x + 3, 0.0, 6.0) / 6; }),
      elementwise_op(
          "activations", "hardsigmoid", [](const auto& x) { return xgrad::hardsigmoid(x[0]); },
          [](double x) -> double { return std::clamp(x + 3, 0.0, 6.0) / 6; }),
      elementwise_op(
          "activations", "hardtanh", [](const auto& x) { return xgrad::hardtanh(x[0], -0.5, 1.5); },
          [](double x) -> double { return std::clamp(x, -0.5, 1.5); }),
      elementwise_op(
          "activations", "relu6", [](const auto& x) { return xgrad::relu6(x[0]); },
          [](double x) -> double { return std::clamp(x, 0.0, 6.0); }, {-2, 8, 0.01}),
      elementwise_op(
          "activations", "selu", [](const auto& x) { return xgrad::selu(x[0]); },
          [](double x) -> double {
            return 1.0507009873554804934 * (x > 0 ? x : 1.6732632423543772848 * std::expm1(x));
          },
          {-8, 8, 0.01}),
      elementwise_op(
          "activations", "celu", [](const auto& x) { return xgrad::celu(x[0], 1.5); },
          [](double x) -> double { return x > 0 ? x : 1.5 * std::expm1(x / 1.5); }, {-8, 8, 0.01}),
      // [row of softsign]
      elementwise_op(
          "activations", "softsign", [](const auto& x) { return xgrad::softsign(x[0]); },
          [](double x) -> double { return x / (1 + std::abs(x)); }, {-5, 5, 0.01}),
      // [row of softsign]
      elementwise_op(
          "activations", "tanhshrink", [](const auto& x) { return xgrad::tanhshrink(x[0]); },
          [](double x) -> double { return x - std::tanh(x); }),
      elementwise_op(
          "activations", "softshrink", [](const auto& x) { return xgrad::softshrink(x[0]); },
          [](double x) -> double { return x > 0.5    ? x - 0.5
                                          : x < -0.5 ? x + 0.5
                                                     : 0; }),
      elementwise_op(
          "activations", "hardshrink", [](const auto& x) { return xgrad::hardshrink(x[0]); },
          [](double x) -> double { return std::abs(x) > 0.5 ? x : 0; }),
      elementwise_op(
          "activations", "threshold", [](const auto& x) { return xgrad::threshold(x[0], 0.25, -3); },
          [](double x) -> double { return x > 0.25 ? x : -3; })};
  const auto row = [&](const std::string& function) -> Op& {
    return *std::find_if(all.begin(), all.end(),
                         [&](const Op& op) { return op.name == "activations." + function; });
  };
  row("hardswish")
      .cases.push_back(make_case(
          {{{9, 33}, {-8, 8, 0}}}, [](const auto& x) { return xgrad::hardswish(x[0]); },
          naive::map([](double x) { return x * std::clamp(x + 3, 0.0, 6.0) / 6; })));
  row("hardsigmoid")
      .cases.push_back(make_case(
          {{{9, 33}, {-8, 8, 0}}}, [](const auto& x) { return xgrad::hardsigmoid(x[0]); },
          naive::map([](double x) { return std::clamp(x + 3, 0.0, 6.0) / 6; })));
  row("hardtanh").errors = {error<ValueError>("hardtanh: min_val must be at most max_val, got 1 and 0.5",
                                              [] { xgrad::hardtanh(x(2), 1, 0.5); })};
  row("celu").errors = {error<ValueError>("celu: alpha must not be 0", [] { xgrad::celu(x(2), 0); })};
  row("softshrink").errors = {error<ValueError>("softshrink: lambda must be at least 0, got -1",
                                                [] { xgrad::softshrink(x(2), -1); })};
  row("tanhshrink").tails.clear();  // x - tanh(x) cancels near 0
  return all;
});

const Conformance conformance{
    {"mish", [](const auto& c) { return mish(c.x()); }},
    {"hardswish", [](const auto& c) { return hardswish(c.x()); }},
    {"hardsigmoid", [](const auto& c) { return hardsigmoid(c.x()); }},
    {"hardtanh", [](const auto& c) { return hardtanh(c.x(), c.scalar("min_val"), c.scalar("max_val")); }},
    {"relu6", [](const auto& c) { return relu6(c.x()); }},
    {"selu", [](const auto& c) { return selu(c.x()); }},
    {"celu", [](const auto& c) { return celu(c.x(), c.scalar("alpha")); }},
    // [adapter of softsign]
    {"softsign", [](const auto& c) { return softsign(c.x()); }},
    // [adapter of softsign]
    {"tanhshrink", [](const auto& c) { return tanhshrink(c.x()); }},
    {"softshrink", [](const auto& c) { return softshrink(c.x(), c.scalar("lambda")); }},
    {"hardshrink", [](const auto& c) { return hardshrink(c.x(), c.scalar("lambda")); }},
    {"threshold", [](const auto& c) { return threshold(c.x(), c.scalar("threshold"), c.scalar("value")); }}};

/// A call with an attribute on elements that are clear of it and of its negative.
Draw shrink_draw(const char* op) {
  return {op, [op](Drawing& d) {
            const Name x = d.numbers();
            const double lambda = d.one_of({0.5, 0.1, 1.5});
            if (d.is_clear_of(lambda, d.value(x)) && d.is_clear_of(-lambda, d.value(x)))
              d.call(op, {x}, {{"lambda", lambda}});
          }};
}

void draw_hardtanh(Drawing& d) {
  const Name x = d.numbers();
  const double low = d.uniform(-2, 0), high = d.uniform(0, 2);
  if (d.is_clear_of(low, d.value(x)) && d.is_clear_of(high, d.value(x)))
    d.call("hardtanh", {x}, {{"min_val", low}, {"max_val", high}});
}

void draw_celu(Drawing& d) {
  const Name x = d.numbers();
  if (d.is_clear_of(0, d.value(x))) d.call("celu", {x}, {{"alpha", d.one_of({1.0, 0.3, 2.5})}});
}

void draw_threshold(Drawing& d) {
  const Name x = d.numbers();
  const double at = d.uniform(-1, 1);
  if (d.is_clear_of(at, d.value(x))) d.call("threshold", {x}, {{"threshold", at}, {"value", 2.5}});
}

const Draws draws{elementwise_draw("mish"),
                  elementwise_draw("hardswish", {-10, 10}, {-3, 3}),
                  elementwise_draw("hardsigmoid", {-10, 10}, {-3, 3}),
                  {"hardtanh", draw_hardtanh},
                  elementwise_draw("relu6", {-10, 10}, {0, 6}),
                  elementwise_draw("selu", {-10, 10}, {0}),
                  {"celu", draw_celu},
                  // [draw of softsign]
                  elementwise_draw("softsign", {-10, 10}, {0}),
                  // [draw of softsign]
                  elementwise_draw("tanhshrink"),
                  shrink_draw("softshrink"),
                  shrink_draw("hardshrink"),
                  {"threshold", draw_threshold}};

/// dx from a seed of ones, by the kernel and by the ops that a recorded backward is made of.
void expect_gradients(const Variable<float>& y, const Variable<float>& x, const Array<float>& expected) {
  for (const bool create_graph : {false, true}) {
    expect_near(grad(sum(y), {x}, {.retain_graph = true, .create_graph = create_graph})[0].value(), expected,
                1e-6, y.op());
  }
}

TEST(ActivationsTest, AtKinksAndBoundsTheyAreThoseOfPyTorch) {
  const Variable<float> x(Array<float>{-3, 3, 0, -4, 6, 0.5, -0.5}, true);
  expect_gradients(hardswish(x), x, {0, 1, 0.5, 0, 1, 2.0F / 3, 1.0F / 3});
  expect_gradients(hardsigmoid(x), x, {0, 0, 1.0F / 6, 0, 0, 1.0F / 6, 1.0F / 6});
  expect_gradients(hardtanh(x, -3, 0.5), x, {0, 0, 1, 0, 0, 0, 1});
  expect_gradients(relu6(x), x, {0, 1, 0, 0, 0, 1, 0});
  expect_gradients(softshrink(x), x, {1, 1, 0, 1, 1, 0, 0});
  expect_gradients(hardshrink(x), x, {1, 1, 0, 1, 1, 0, 0});
  expect_gradients(threshold(x, 0.5, 7), x, {0, 1, 0, 0, 1, 0, 0});
  EXPECT_EQ(threshold(x, 0.5, 7).value(), (Array<float>{7, 3, 7, 7, 6, 7, 7}));
  EXPECT_EQ(softshrink(x).value(), (Array<float>{-2.5, 2.5, 0, -3.5, 5.5, 0, 0}));
}

TEST(ActivationsTest, InfinitiesGiveTheLimit) {
  const Variable<float> x(Array<float>{-inf, inf, nan});
  expect_near(mish(x).value(), Array<float>{0, inf, nan}, 0, "mish");
  expect_near(hardswish(x).value(), Array<float>{0, inf, nan}, 0, "hardswish");
  expect_near(hardsigmoid(x).value(), Array<float>{0, 1, nan}, 0, "hardsigmoid");
  expect_near(hardtanh(x).value(), Array<float>{-1, 1, nan}, 0, "hardtanh");
  expect_near(selu(x).value(), Array<float>{-1.7580993F, inf, nan}, 1e-6, "selu");
  expect_near(celu(x, 0.5).value(), Array<float>{-0.5, inf, nan}, 1e-6, "celu");
  expect_near(softsign(x).value(), Array<float>{-1, 1, nan}, 0, "softsign");
  expect_near(tanhshrink(x).value(), Array<float>{-inf, inf, nan}, 0, "tanhshrink");
  expect_near(softshrink(x).value(), Array<float>{-inf, inf, nan}, 0, "softshrink");
  expect_near(hardshrink(x).value(), Array<float>{-inf, inf, nan}, 0, "hardshrink");
  expect_near(threshold(x, 1, 2).value(), Array<float>{2, inf, nan}, 0, "threshold");
}

}  // namespace xgrad_tests::activations_rows
