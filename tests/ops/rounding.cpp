// What there is to test and to measure of the functions that are constant between jumps, and of fmod.
#include <xgrad/ops/rounding.hpp>

#ifndef XGRAD_BENCH_OPS

#include <cmath>

#include <gtest/gtest.h>

#include <xgrad/ops/reductions.hpp>

#include "common/expect_near.hpp"
#include "common/pointwise.hpp"

namespace xgrad_tests {
namespace {

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

const Rows rows([] {
  return std::vector<Op>{elementwise_op(
                             "rounding", "floor", [](const auto& x) { return xgrad::floor(x[0]); },
                             [](double x) { return std::floor(x); }, {-5, 5, 0.01}),
                         elementwise_op(
                             "rounding", "ceil", [](const auto& x) { return xgrad::ceil(x[0]); },
                             [](double x) { return std::ceil(x); }, {-5, 5, 0.01}),
                         elementwise_op(
                             "rounding", "round", [](const auto& x) { return xgrad::round(x[0]); },
                             [](double x) { return std::nearbyint(x); }, {-5, 5, 0.01}),
                         elementwise_op(
                             "rounding", "trunc", [](const auto& x) { return xgrad::trunc(x[0]); },
                             [](double x) { return std::trunc(x); }, {-5, 5, 0.01}),
                         elementwise_op(
                             "rounding", "sign", [](const auto& x) { return xgrad::sign(x[0]); },
                             [](double x) { return x < 0 ? -1.0 : 1.0; }, {-5, 5, 0.01}),
                         fmod_op()};
});

const Conformance conformance{{"floor", [](const auto& c) { return floor(c.x()); }},
                              {"ceil", [](const auto& c) { return ceil(c.x()); }},
                              {"round", [](const auto& c) { return round(c.x()); }},
                              {"trunc", [](const auto& c) { return trunc(c.x()); }},
                              {"sign", [](const auto& c) { return sign(c.x()); }},
                              {"fmod", [](const auto& c) { return fmod(c.x(), second(c)); }}};

/// A call on elements that are clear of the jumps, at integers plus this part.
Draw rounding_draw(const char* op, double part) {
  std::vector<double> jumps;
  for (int i = -11; i <= 11; ++i) jumps.push_back(i + part);
  return elementwise_draw(op, {-10, 10}, jumps);
}

void draw_fmod(Drawing& d) {
  const auto clear = [&](const Array<double>& quotients) {
    for (int jump = 1; jump <= 60; ++jump) {
      if (!d.is_clear_of(jump, quotients) || !d.is_clear_of(-jump, quotients)) return false;
    }
    return true;
  };
  if (d.chance(0.3)) {
    const Name x = d.numbers();
    const double other = d.one_of({1.7, -2.5, 10.0});
    if (clear(d.result("div", {x}, {{"other", other}}))) d.call("fmod", {x}, {{"other", other}});
    return;
  }
  const auto [a, b] = broadcasting(d);
  const Name divisor = d.within(b, {0.5, 3});
  if (clear(d.result("div", {a, divisor}))) d.call("fmod", {a, divisor});
}

const Draws draws{rounding_draw("floor", 0),
                  rounding_draw("ceil", 0),
                  rounding_draw("round", 0.5),
                  rounding_draw("trunc", 0),
                  elementwise_draw("sign", {-30, 30}, {0}),
                  {"fmod", draw_fmod}};

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
}

}  // namespace
}  // namespace xgrad_tests

#else  // bench_ops

#include "common/bench.hpp"

namespace bench {
namespace {

const Rows rows("rounding", [](const Sizes& s) -> std::vector<Row> {
  return {
      {"floor", {{s.flat}}, [](auto& a) { return floor(a[0]); }},
      {"ceil", {{s.flat}}, [](auto& a) { return ceil(a[0]); }},
      {"round", {{s.flat}}, [](auto& a) { return round(a[0]); }},
      {"trunc", {{s.flat}}, [](auto& a) { return trunc(a[0]); }},
      {"sign", {{s.flat}}, [](auto& a) { return sign(a[0]); }},
      {"fmod", {{s.flat}, positive(s.flat)}, [](auto& a) { return fmod(a[0], a[1]); }},
  };
});

}  // namespace
}  // namespace bench

#endif
