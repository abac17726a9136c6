// What there is to test of the special functions.
#include <xgrad/ops/pointwise/special.hpp>

#include <cmath>

#include <gtest/gtest.h>

#include "../common/expect_near.hpp"
#include "../common/pointwise.hpp"

namespace xgrad_tests::special_rows {

double naive_lgamma(double x) {
  int sign = 0;
  return ::lgamma_r(x, &sign);
}

/// Recurrence to where three terms of the asymptotic series are enough.
double naive_digamma(double x) {
  long double sum = 0, a = x;
  for (; a < 1000; a += 1) sum -= 1 / a;
  return static_cast<double>(sum + std::log(a) - 1 / (2 * a) - 1 / (12 * a * a) + 1 / (120 * a * a * a * a));
}

/// (-1)^(n + 1) n! times the sum of 1 / (x + k)^(n + 1), and the rest of the sum as an integral.
template <int n>
double naive_polygamma(double x) {
  long double sum = 0, a = x;
  for (; a < 1000; a += 1) sum += std::pow(a, -(n + 1.0L));
  sum += std::pow(a, -static_cast<long double>(n)) / n + std::pow(a, -(n + 1.0L)) / 2 +
         (n + 1) * std::pow(a, -(n + 2.0L)) / 12 -
         (n + 1) * (n + 2) * (n + 3) * std::pow(a, -(n + 4.0L)) / 720;
  return static_cast<double>((n % 2 == 0 ? -1 : 1) * std::tgamma(n + 1.0L) * sum);
}

double naive_erfinv(double x) {
  long double low = -3, high = 3;
  for (int i = 0; i < 60; ++i) {
    const long double middle = (low + high) / 2;
    (std::erf(middle) < x ? low : high) = middle;
  }
  return static_cast<double>((low + high) / 2);
}

/// Of positive numbers, and of negative ones between two poles.
template <class F>
Op special_op(const char* name, const F& f, double (*reference)(double)) {
  Op op = elementwise_op("special", name, f, reference, {0.3, 8, 0}, {3001});
  op.cases.push_back(make_case({{{17}, {-0.8, -0.2}}}, f, naive::map(reference)));
  op.cases.push_back(make_case({{{17}, {-6.8, -6.2}}}, f, naive::map(reference)));
  return op;
}

Op polygamma_op() {
  Op op =
      joined(special_op(
                 "polygamma", [](const auto& x) { return xgrad::polygamma(1, x[0]); }, naive_polygamma<1>),
             special_op(
                 "polygamma", [](const auto& x) { return xgrad::polygamma(2, x[0]); }, naive_polygamma<2>));
  op.cases.push_back(make_case(
      {{{17}, {0.5, 3}}}, [](const auto& x) { return xgrad::polygamma(0, x[0]); },
      naive::map(naive_digamma)));
  op.errors = {
      error<ValueError>("polygamma: n must not be negative, got -1", [] { xgrad::polygamma(-1, x(2)); })};
  return op;
}

const Rows rows([] {
  return std::vector<Op>{
      special_op(
          "lgamma", [](const auto& x) { return xgrad::lgamma(x[0]); }, naive_lgamma),
      special_op(
          "digamma", [](const auto& x) { return xgrad::digamma(x[0]); }, naive_digamma),
      polygamma_op(),
      elementwise_op(
          "special", "erfc", [](const auto& x) { return xgrad::erfc(x[0]); },
          [](double x) { return std::erfc(x); }),
      elementwise_op("special", "erfinv", [](const auto& x) { return xgrad::erfinv(x[0]); }, naive_erfinv,
                     {-0.95, 0.95, 0}, {3001})};
});

const Conformance conformance{{"lgamma", [](const auto& c) { return lgamma(c.x()); }},
                              {"digamma", [](const auto& c) { return digamma(c.x()); }},
                              {"polygamma", [](const auto& c) { return polygamma(c.dim("n"), c.x()); }},
                              {"erfc", [](const auto& c) { return erfc(c.x()); }},
                              {"erfinv", [](const auto& c) { return erfinv(c.x()); }}};

void draw_polygamma(Drawing& d) {
  d.call("polygamma", {d.within(d.numbers(), positive)}, {{"n", d.one_of<std::ptrdiff_t>({0, 1, 2})}});
}

const Draws draws{elementwise_draw("lgamma", positive),
                  elementwise_draw("digamma", positive),
                  {"polygamma", draw_polygamma},
                  elementwise_draw("erfc", {-3, 3}),
                  elementwise_draw("erfinv", {-0.9, 0.9})};

/// |y - truth| <= tolerance |truth|.
void expect_close(const Variable<double>& y, double truth, double tolerance = 1e-14) {
  EXPECT_NEAR(y.item(), truth, tolerance * std::abs(truth)) << y.op();
}

TEST(SpecialTest, PolygammaHasTheValuesOfMpmath) {
  using V = Variable<double>;
  expect_close(digamma(V(1e-5)), -100000.57719921567);
  expect_close(digamma(V(1.0)), -0.57721566490153286);
  expect_close(digamma(V(10.25)), 2.277704790686724);
  expect_close(digamma(V(1e6)), 13.815510057964191);
  expect_close(digamma(V(-3.75)), -1.6923885983113303);
  expect_close(digamma(V(-1000.25)), 10.050097693066706);
  expect_close(polygamma(1, V(0.1)), 101.43329915079275);
  expect_close(polygamma(1, V(40.5)), 0.024998698201356741);
  expect_close(polygamma(2, V(2.5)), -0.2362040516417274);
  expect_close(polygamma(2, V(-3.75)), -124.07972713378925);
  expect_close(polygamma(5, V(40.5)), 2.3419208117483821e-7);
  expect_close(polygamma(5, V(-0.5)), 15371.113548602435);
  expect_close(polygamma(20, V(1.0)), -2.4329031685078613e+18);
  expect_close(polygamma(20, V(40.5)), -1.0943655030857746e-15);
  expect_close(polygamma(20, V(-0.5)), -487772949462609.87, 1e-13);
}

TEST(SpecialTest, ErfinvHasTheValuesOfMpmath) {
  using V = Variable<double>;
  expect_close(erfinv(V(1e-20)), 8.8622692545275797e-21, 1e-15);
  expect_close(erfinv(V(0.1)), 0.088855990494257692, 1e-15);
  expect_close(erfinv(V(-0.75)), -0.81341984759761854, 1e-15);
  expect_close(erfinv(V(0.999)), 2.3267537655135245, 1e-15);
  expect_close(erfinv(V(1 - 0x1p-30)), 4.3280282758009465, 1e-15);
  expect_close(erfinv(V(1 - 0x1p-53)), 5.8635847487551679, 1e-15);
}

TEST(SpecialTest, ErfinvUndoesErf) {
  for (double y = -5; y < 5; y += 0.01) {
    const double x = y < 0 ? std::erfc(-y) - 1 : 1 - std::erfc(y);
    const double slope = 2 / std::sqrt(M_PI) * std::exp(-y * y);
    EXPECT_NEAR(erfinv(Variable<double>(x)).item(), y, 1e-15 + 1e-16 / slope);
  }
}

TEST(SpecialTest, PolesAndEndsAreThoseOfPyTorch) {
  const Variable<float> x(Array<float>{0, -0.0F, -1, inf, -inf, nan});
  expect_near(digamma(x).value(), Array<float>{-inf, inf, nan, inf, nan, nan}, 0, "digamma");
  expect_near(polygamma(1, x).value(), Array<float>{inf, inf, inf, 0, inf, nan}, 0, "polygamma 1");
  expect_near(polygamma(2, x).value(), Array<float>{-inf, -inf, -inf, 0, -inf, nan}, 0, "polygamma 2");
  expect_near(lgamma(x).value(), Array<float>{inf, inf, inf, inf, inf, nan}, 0, "lgamma");
  const Variable<float> ends(Array<float>{0, 1, -1, 1.5, nan}, true);
  expect_near(erfinv(ends).value(), Array<float>{0, inf, -inf, nan, nan}, 0, "erfinv");
  expect_near(erfc(x).value(), Array<float>{1, 1, 1.8427008F, 0, 2, nan}, 1e-7, "erfc");
}

TEST(SpecialTest, ErfcDoesNotCancel) {
  EXPECT_DOUBLE_EQ(erfc(Variable<double>(10.0)).item(), 2.088487583762545e-45);
}

TEST(SpecialTest, FarNegativeNumbersTakeNoLongerThanOthers) {
  EXPECT_TRUE(std::isfinite(digamma(Variable<double>(-1e15 - 0.25)).item()));
  EXPECT_TRUE(std::isfinite(polygamma(3, Variable<double>(-1e15 - 0.25)).item()));
}

}  // namespace xgrad_tests::special_rows
