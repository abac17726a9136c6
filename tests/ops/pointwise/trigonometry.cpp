// What there is to test of the trigonometric and hyperbolic functions.
#include <xgrad/ops/pointwise/trigonometry.hpp>

#include <cmath>

#include <gtest/gtest.h>

#include <xgrad/ops/reduce/reductions.hpp>

#include "../common/expect_near.hpp"
#include "../common/pointwise.hpp"

namespace xgrad_tests::trigonometry_rows {

const Rows rows([] {
  return std::vector<Op>{
      elementwise_op(
          "trigonometry", "sin", [](const auto& x) { return xgrad::sin(x[0]); },
          [](double x) { return std::sin(x); }, {-20, 20, 0}),
      elementwise_op(
          "trigonometry", "cos", [](const auto& x) { return xgrad::cos(x[0]); },
          [](double x) { return std::cos(x); }, {-20, 20, 0}),
      elementwise_op(
          "trigonometry", "tan", [](const auto& x) { return xgrad::tan(x[0]); },
          [](double x) { return std::tan(x); }, {-1.2, 1.2, 0}),
      elementwise_op(
          "trigonometry", "asin", [](const auto& x) { return xgrad::asin(x[0]); },
          [](double x) { return std::asin(x); }, {-0.9, 0.9, 0}),
      elementwise_op(
          "trigonometry", "acos", [](const auto& x) { return xgrad::acos(x[0]); },
          [](double x) { return std::acos(x); }, {-0.9, 0.9, 0}),
      elementwise_op(
          "trigonometry", "atan", [](const auto& x) { return xgrad::atan(x[0]); },
          [](double x) { return std::atan(x); }),
      arithmetic_op(
          "trigonometry", "atan2", [](const auto& x) { return xgrad::atan2(x[0], x[1]); },
          [](double a, double b) { return std::atan2(a, b); }, away_from_zero, away_from_zero),
      elementwise_op(
          "trigonometry", "sinh", [](const auto& x) { return xgrad::sinh(x[0]); },
          [](double x) { return std::sinh(x); }),
      elementwise_op(
          "trigonometry", "cosh", [](const auto& x) { return xgrad::cosh(x[0]); },
          [](double x) { return std::cosh(x); }),
      elementwise_op(
          "trigonometry", "asinh", [](const auto& x) { return xgrad::asinh(x[0]); },
          [](double x) { return std::asinh(x); }, {-20, 20, 0}),
      elementwise_op(
          "trigonometry", "acosh", [](const auto& x) { return xgrad::acosh(x[0]); },
          [](double x) { return std::acosh(x); }, {1.2, 9, 0}),
      elementwise_op(
          "trigonometry", "atanh", [](const auto& x) { return xgrad::atanh(x[0]); },
          [](double x) { return std::atanh(x); }, {-0.8, 0.8, 0})};
});

const Conformance conformance{{"sin", [](const auto& c) { return sin(c.x()); }},
                              {"cos", [](const auto& c) { return cos(c.x()); }},
                              {"tan", [](const auto& c) { return tan(c.x()); }},
                              {"asin", [](const auto& c) { return asin(c.x()); }},
                              {"acos", [](const auto& c) { return acos(c.x()); }},
                              {"atan", [](const auto& c) { return atan(c.x()); }},
                              {"atan2", [](const auto& c) { return atan2(c.x(), second(c)); }},
                              {"sinh", [](const auto& c) { return sinh(c.x()); }},
                              {"cosh", [](const auto& c) { return cosh(c.x()); }},
                              {"asinh", [](const auto& c) { return asinh(c.x()); }},
                              {"acosh", [](const auto& c) { return acosh(c.x()); }},
                              {"atanh", [](const auto& c) { return atanh(c.x()); }}};

const Draws draws{elementwise_draw("asinh", {-30, 30}),
                  elementwise_draw("acosh", {1.2, 9}),
                  elementwise_draw("atanh", {-0.8, 0.8}),
                  elementwise_draw("sin", {-30, 30}),
                  elementwise_draw("cos", {-30, 30}),
                  elementwise_draw("tan", {-1.2, 1.2}),
                  elementwise_draw("asin", {-0.9, 0.9}),
                  elementwise_draw("acos", {-0.9, 0.9}),
                  elementwise_draw("atan"),
                  arithmetic_draw("atan2", {-5, 5}, positive),
                  arithmetic_draw("atan2", positive, {-5, 5}),
                  elementwise_draw("sinh", {-3, 3}),
                  elementwise_draw("cosh", {-3, 3})};

TEST(TrigonometryTest, LargeAnglesAreReducedExactly) {
  const Variable<double> x(Array<double>{1e6, -1e15, 1e22, 1e300});
  expect_near(
      sin(x).value(),
      Array<double>{-0.34999350217129295, -0.85827279317023584, -0.8522008497671888, -0.8178819121159086},
      1e-15, "sin");
  expect_near(
      cos(x).value(),
      Array<double>{0.93675212753314479, -0.51319373778697025, 0.52321478539513895, -0.57538611195754905},
      1e-15, "cos");
}

TEST(TrigonometryTest, AnAngleHasTheSameSineAmongLargeOnes) {
  Array<float> x = Array<float>::from_shape({1000});
  for (std::size_t i = 0; i < x.size(); ++i) x(i) = static_cast<float>(i);
  const Variable<float> small(x, true);
  x(3) = 1e9;
  x(700) = nan;
  const Variable<float> mixed(x, true);
  const Array<float> dx = grad(sum(sin(mixed)), {mixed})[0].value();
  for (std::size_t i = 0; i < x.size(); ++i) {
    if (i == 3 || i == 700) continue;
    EXPECT_EQ(sin(small).value()(i), sin(mixed).value()(i)) << i;
    EXPECT_EQ(cos(small).value()(i), dx(i)) << i;
  }
  EXPECT_EQ(sin(mixed).value()(3), std::sin(1e9F));
  EXPECT_EQ(dx(3), std::cos(1e9F));
  EXPECT_TRUE(std::isnan(sin(mixed).value()(700)));
  EXPECT_TRUE(std::isnan(dx(700)));
}

TEST(TrigonometryTest, SpecialValues) {
  const Variable<float> x(Array<float>{inf, -inf, nan});
  for (const Variable<float>& y : {sin(x), cos(x), tan(x), asin(x), acos(x)})
    for (const float element : y.value().storage()) EXPECT_TRUE(std::isnan(element)) << y.op();
  EXPECT_TRUE(std::isnan(atan(x).value()(2)));
  EXPECT_FLOAT_EQ(atan(x).value()(0), static_cast<float>(M_PI / 2));
  EXPECT_EQ(sinh(x).value()(1), -inf);
  EXPECT_EQ(cosh(x).value()(1), inf);
  EXPECT_EQ(acos(cos(Variable<float>(0.0F))).item(), 0);
}

TEST(TrigonometryTest, Atan2KnowsTheQuadrantAndNumbers) {
  const Variable<double> a(Array<double>{1, 1, -1, -1, 0, -0.0}), b(Array<double>{1, -1, 1, -1, -1, -1});
  const double right = M_PI / 2, half = M_PI / 4;
  expect_near(atan2(a, b).value(), Array<double>{half, 3 * half, -half, -3 * half, M_PI, -M_PI}, 1e-15,
              "atan2");
  EXPECT_DOUBLE_EQ(atan2(Variable<double>(2.0), 0).item(), right);
  EXPECT_DOUBLE_EQ(atan2(0, Variable<double>(-2.0)).item(), M_PI);
}

TEST(TrigonometryTest, InverseHyperbolicFunctionsEndWhereTheirsDo) {
  const Variable<double> x(Array<double>{1, -1, 0, 2, -2, inf, nan}, true);
  const double asinh_1 = 0.881373587019543, asinh_2 = 1.4436354751788103;
  expect_near(asinh(x).value(), Array<double>{asinh_1, -asinh_1, 0, asinh_2, -asinh_2, inf, nan}, 1e-15,
              "asinh");
  expect_near(acosh(x).value(), Array<double>{0, nan, nan, 1.3169578969248166, nan, inf, nan}, 1e-15,
              "acosh");
  expect_near(atanh(x).value(), Array<double>{inf, -inf, 0, nan, nan, nan, nan}, 1e-15, "atanh");
  expect_near(grad(sum(acosh(x)), {x})[0].value(),
              Array<double>{inf, nan, nan, 1 / std::sqrt(3), nan, 0, nan}, 1e-15, "acosh's gradient");
  expect_near(grad(sum(atanh(x)), {x})[0].value(), Array<double>{inf, inf, 1, nan, nan, nan, nan}, 1e-15,
              "atanh's gradient");
}

}  // namespace xgrad_tests::trigonometry_rows
