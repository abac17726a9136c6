// What there is to test of the exponentials and logarithms.
#include <xgrad/ops/pointwise/logarithms.hpp>

#include <cmath>

#include <gtest/gtest.h>

#include <xgrad/ops/reduce/reductions.hpp>

#include "../common/expect_near.hpp"
#include "../common/pointwise.hpp"

namespace xgrad_tests::logarithms_rows {

const Rows rows([] {
  return std::vector<Op>{
      elementwise_op(
          "logarithms", "exp2", [](const auto& x) { return xgrad::exp2(x[0]); },
          [](double x) { return std::exp2(x); }),
      elementwise_op(
          "logarithms", "expm1", [](const auto& x) { return xgrad::expm1(x[0]); },
          [](double x) { return std::expm1(x); }),
      elementwise_op(
          "logarithms", "log1p", [](const auto& x) { return xgrad::log1p(x[0]); },
          [](double x) { return std::log1p(x); }, {-0.8, 3, 0}),
      elementwise_op(
          "logarithms", "log2", [](const auto& x) { return xgrad::log2(x[0]); },
          [](double x) { return std::log2(x); }, positive),
      elementwise_op(
          "logarithms", "log10", [](const auto& x) { return xgrad::log10(x[0]); },
          [](double x) { return std::log10(x); }, positive),
      arithmetic_op(
          "logarithms", "xlogy", [](const auto& x) { return xgrad::xlogy(x[0], x[1]); },
          [](double a, double b) { return a * std::log(b); }, positive),
      arithmetic_op(
          "logarithms", "logaddexp", [](const auto& x) { return xgrad::logaddexp(x[0], x[1]); },
          [](double a, double b) { return std::log(std::exp(a) + std::exp(b)); })};
});

const Conformance conformance{{"exp2", [](const auto& c) { return exp2(c.x()); }},
                              {"expm1", [](const auto& c) { return expm1(c.x()); }},
                              {"log1p", [](const auto& c) { return log1p(c.x()); }},
                              {"log2", [](const auto& c) { return log2(c.x()); }},
                              {"log10", [](const auto& c) { return log10(c.x()); }},
                              {"xlogy", [](const auto& c) { return xlogy(c.x(), second(c)); }},
                              {"logaddexp", [](const auto& c) { return logaddexp(c.x(), second(c)); }}};

const Draws draws{elementwise_draw("exp2", {-4, 4}),     elementwise_draw("expm1", {-3, 3}),
                  elementwise_draw("log1p", {-0.7, 10}), elementwise_draw("log2", positive),
                  elementwise_draw("log10", positive),   arithmetic_draw("xlogy", {-5, 5}, positive),
                  arithmetic_draw("logaddexp")};

TEST(LogarithmsTest, SmallNumbersDoNotCancel) {
  for (const double x : {1e-300, -1e-300, 1e-17, -1e-9, 3e-5}) {
    EXPECT_DOUBLE_EQ(expm1(Variable<double>(x)).item(), std::expm1(x));
    EXPECT_DOUBLE_EQ(log1p(Variable<double>(x)).item(), std::log1p(x));
  }
}

TEST(LogarithmsTest, SpecialValues) {
  const Variable<float> x(Array<float>{0, -1, inf, -inf, nan, -2}, true);
  expect_near(exp2(x).value(), Array<float>{1, 0.5, inf, 0, nan, 0.25}, 0, "exp2");
  expect_near(expm1(x).value(), Array<float>{0, -0.63212055F, inf, -1, nan, -0.86466473F}, 1e-7, "expm1");
  expect_near(log1p(x).value(), Array<float>{0, -inf, inf, nan, nan, nan}, 0, "log1p");
  expect_near(log2(x).value(), Array<float>{-inf, nan, inf, nan, nan, nan}, 0, "log2");
  expect_near(log10(x).value(), Array<float>{-inf, nan, inf, nan, nan, nan}, 0, "log10");
  EXPECT_EQ(grad(sum(log1p(x)), {x})[0].value()(1), inf);
}

TEST(LogarithmsTest, XlogyIsZeroWhereItsFactorIs) {
  const Variable<double> a(Array<double>{0, 0, 0, 0, 1, 2}, true),
      b(Array<double>{0, -1, nan, 2, 0, 3}, true);
  expect_near(xlogy(a, b).value(), Array<double>{0, 0, nan, 0, -inf, 2 * std::log(3)}, 1e-15, "xlogy");
  const auto grads = grad(sum(xlogy(a, b)), {a, b});
  expect_near(grads[0].value(), Array<double>{0, 0, nan, std::log(2), -inf, std::log(3)}, 1e-15, "da");
  expect_near(grads[1].value(), Array<double>{nan, 0, nan, 0, inf, 2.0 / 3}, 1e-15, "db");
}

TEST(LogarithmsTest, LogaddexpOfInfinitiesIsTheLargerOne) {
  const Variable<double> a(Array<double>{inf, -inf, inf, -inf, nan, 1000, -1e308}),
      b(Array<double>{inf, -inf, -inf, 3, 1, 1000, 1e308});
  expect_near(logaddexp(a, b).value(), Array<double>{inf, -inf, inf, 3, nan, 1000 + std::log(2), 1e308},
              1e-15, "logaddexp");
  EXPECT_DOUBLE_EQ(logaddexp(Variable<double>(2.0), 2).item(), 2 + std::log(2));
}

TEST(LogarithmsTest, LogaddexpInFloatHasTheGradientsOfDouble) {
  for (const float x : {0.f, 0.3f, -2.f, 17.f, -30.f, 80.f, -1e10f, 1e30f}) {
    const Variable<float> a(x, true), b(1.f, true);
    const Variable<double> exact_a(static_cast<double>(x), true), exact_b(1.0, true);
    const auto found = grad(logaddexp(a, b), {a, b});
    const auto expected = grad(logaddexp(exact_a, exact_b), {exact_a, exact_b});
    for (std::size_t i = 0; i < 2; ++i)
      EXPECT_NEAR(found[i].item(), expected[i].item(), 5e-5 * expected[i].item() + 1e-38) << x;
  }
}

TEST(LogarithmsTest, XlogyTakesNumbers) {
  EXPECT_DOUBLE_EQ(xlogy(Variable<double>(2.0), 3).item(), 2 * std::log(3));
  EXPECT_DOUBLE_EQ(xlogy(2, Variable<double>(3.0)).item(), 2 * std::log(3));
}

}  // namespace xgrad_tests::logarithms_rows
