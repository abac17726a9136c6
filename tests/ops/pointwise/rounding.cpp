// What there is to test of the functions that are constant between jumps, and of fmod.
#include <xgrad/ops/pointwise/rounding.hpp>

#include <algorithm>
#include <cmath>

#include <gtest/gtest.h>

#include <xgrad/ops/reduce/reductions.hpp>

#include "../common/expect_near.hpp"
#include "../common/pointwise.hpp"

namespace xgrad_tests::rounding_rows {

/// a / b is between 3 and 4, or between -3 and -2: away from where the remainder jumps.
Op fmod_op() {
  const auto f = [](const auto& x) { return xgrad::fmod(x[0], x[1]); };
  const auto reference = [](double a, double b) { return std::fmod(a, b); };
  Op op = arithmetic_op("rounding", "fmod", f, reference, {2.05, 2.3}, {7, 7.9});
  op.cases.push_back(make_case({{{2, 3}, {-5.9, -5.1}}, {{3}, {2.05, 2.5}}}, f, naive::binary(reference)));
  op.cases.push_back(make_case(
      {{{7}, {-5.9, -5.1}}}, [](const auto& x) { return xgrad::fmod(x[0], 2); },
      naive::map([](double x) { return std::fmod(x, 2); })));
  return op;
}

/// As fmod_op, on either side of 0.
Op remainder_op() {
  const auto f = [](const auto& x) { return xgrad::remainder(x[0], x[1]); };
  const auto reference = [](double a, double b) { return a - b * std::floor(a / b); };
  Op op = arithmetic_op("rounding", "remainder", f, reference, {2.05, 2.3}, {7, 7.9});
  op.cases.push_back(make_case({{{2, 3}, {-5.9, -5.1}}, {{3}, {2.05, 2.5}}}, f, naive::binary(reference)));
  op.cases.push_back(make_case({{{2, 3}, {5.1, 5.9}}, {{3}, {-2.5, -2.05}}}, f, naive::binary(reference)));
  return op;
}

const Rows rows([] {
  const auto row = [](const char* name, const auto& f, double (*reference)(double)) {
    return elementwise_op("rounding", name, f, reference, {-5, 5, 0.01});
  };
  Op sign = row(
      "sign", [](const auto& x) { return xgrad::sign(x[0]); }, [](double x) { return x < 0 ? -1.0 : 1.0; });
  sign.passes_nan_on = false;  // it has the sign 0, as in PyTorch
  return std::vector<Op>{
      row(
          "floor", [](const auto& x) { return xgrad::floor(x[0]); }, [](double x) { return std::floor(x); }),
      row(
          "ceil", [](const auto& x) { return xgrad::ceil(x[0]); }, [](double x) { return std::ceil(x); }),
      row(
          "round", [](const auto& x) { return xgrad::round(x[0]); },
          [](double x) { return std::nearbyint(x); }),
      row(
          "trunc", [](const auto& x) { return xgrad::trunc(x[0]); }, [](double x) { return std::trunc(x); }),
      sign,
      fmod_op(),
      remainder_op()};
});

const Conformance conformance{{"floor", [](const auto& c) { return floor(c.x()); }},
                              {"ceil", [](const auto& c) { return ceil(c.x()); }},
                              {"round", [](const auto& c) { return round(c.x()); }},
                              {"trunc", [](const auto& c) { return trunc(c.x()); }},
                              {"sign", [](const auto& c) { return sign(c.x()); }},
                              {"fmod", [](const auto& c) { return fmod(c.x(), second(c)); }},
                              {"remainder", [](const auto& c) { return remainder(c.x(), second(c)); }}};

/// Whether no element is so near to a jump, at integers plus `part`, that in float or in a finite difference
/// it could be on the other side. One that is there could, too.
bool is_clear_of_jumps(const Array<double>& x, double part) {
  const double near = x.size() > 1000 ? 1e-5 : 1e-2;
  return std::all_of(x.storage().begin(), x.storage().end(), [&](double element) {
    return std::abs(element - part - std::nearbyint(element - part)) >= near;
  });
}

Draw rounding_draw(const char* op, double part) {
  return {op, [=](Drawing& d) {
            const Name x = d.numbers();
            if (is_clear_of_jumps(d.value(x), part)) d.call(op, {x});
          }};
}

void draw_sign(Drawing& d) {
  const Name x = d.within(d.numbers(), away_from_zero);
  d.call("sign", {x});
}

/// fmod or remainder, whose quotient is clear of whole numbers.
Draw remainder_draw(const char* op) {
  return {op, [op](Drawing& d) {
            if (d.chance(0.3)) {
              const Name x = d.numbers();
              const double other = d.one_of({1.7, -2.5, 10.0});
              if (is_clear_of_jumps(d.result("div", {x}, {{"other", other}}), 0))
                d.call(op, {x}, {{"other", other}});
              return;
            }
            const auto [a, b] = broadcasting(d);
            const Name divisor = d.within(b, {0.5, 3});
            if (is_clear_of_jumps(d.result("div", {a, divisor}), 0)) d.call(op, {a, divisor});
          }};
}

const Draws draws{rounding_draw("floor", 0),  rounding_draw("ceil", 0), rounding_draw("round", 0.5),
                  rounding_draw("trunc", 0),  {"sign", draw_sign},      remainder_draw("fmod"),
                  remainder_draw("remainder")};

TEST(RoundingTest, HalvesGoToTheEvenInteger) {
  const Variable<float> x(Array<float>{-2.5, -1.5, -0.5, 0.5, 1.5, 2.5, 0.49999997F, 8388609, -3e9});
  EXPECT_EQ(round(x).value(), (Array<float>{-2, -2, 0, 0, 2, 2, 0, 8388609, -3e9}));
  EXPECT_EQ(floor(x).value(), (Array<float>{-3, -2, -1, 0, 1, 2, 0, 8388609, -3e9}));
  EXPECT_EQ(ceil(x).value(), (Array<float>{-2, -1, 0, 1, 2, 3, 1, 8388609, -3e9}));
  EXPECT_EQ(trunc(x).value(), (Array<float>{-2, -1, 0, 0, 1, 2, 0, 8388609, -3e9}));
}

TEST(RoundingTest, SpecialValues) {
  const Variable<float> x(Array<float>{0, inf, -inf, nan});
  for (const Variable<float>& y : {floor(x), ceil(x), round(x), trunc(x)})
    expect_near(y.value(), x.value(), 0, y.op());
  EXPECT_EQ(sign(x).value(), (Array<float>{0, 1, -1, 0}));
}

TEST(RoundingTest, TheGradientIsZeroEverywhere) {
  const Variable<float> x(Array<float>{-1, 0, 0.3F, inf, nan}, true);
  for (const Variable<float>& y : {floor(x), ceil(x), round(x), trunc(x), sign(x)})
    EXPECT_EQ(grad(sum(y), {x})[0].value(), (Array<float>{0, 0, 0, 0, 0})) << y.op();
}

TEST(RoundingTest, TheRemainderHasTheSignOfItsFirstOperand) {
  const Variable<double> a(Array<double>{5, -5, 5, 1, inf, 1}, true),
      b(Array<double>{3, 3, -3, inf, 2, 0}, true);
  expect_near(fmod(a, b).value(), Array<double>{2, -2, 2, 1, nan, nan}, 0, "fmod");
  const auto grads = grad(sum(fmod(a, b)), {a, b});
  EXPECT_EQ(grads[0].value(), (Array<double>{1, 1, 1, 1, 1, 1}));
  EXPECT_EQ(grads[1].value(), (Array<double>{-1, 1, 1, 0, -inf, -inf}));
  EXPECT_EQ(fmod(7, Variable<double>(4.0)).item(), 3);
  const Variable<float> tenth(0.1F, true);  // 0.7f / 0.1f is below 7, but rounds to it
  EXPECT_EQ(grad(fmod(Variable<float>(0.7F), tenth), {tenth})[0].item(), -6);
}

TEST(RoundingTest, TheRemainderOfPythonHasTheSignOfItsSecondOperand) {
  const Variable<double> a(Array<double>{5, -5, 5, 1, inf, 1, -1, 0}, true),
      b(Array<double>{3, 3, -3, inf, 2, 0, inf, -2}, true);
  expect_near(remainder(a, b).value(), Array<double>{2, 1, -1, 1, nan, nan, inf, 0}, 0, "remainder");
  const auto grads = grad(sum(remainder(a, b)), {a, b});
  EXPECT_EQ(grads[0].value(), (Array<double>{1, 1, 1, 1, 1, 1, 1, 1}));
  EXPECT_EQ(grads[1].value(), (Array<double>{-1, 2, 2, 0, -inf, -inf, 0, 0}));
  EXPECT_EQ(remainder(Variable<double>(-7.0), 4).item(), 1);
}

}  // namespace xgrad_tests::rounding_rows
