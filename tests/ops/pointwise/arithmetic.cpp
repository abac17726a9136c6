// What there is to test of the operations of two inputs that broadcast.
#include <xgrad/ops/pointwise/arithmetic.hpp>

#include <algorithm>
#include <cmath>

#include <gtest/gtest.h>

#include "../common/call.hpp"
#include "../common/draw.hpp"
#include "../common/expect_near.hpp"
#include "../common/naive.hpp"
#include "../common/op.hpp"
#include "../common/pointwise.hpp"

namespace xgrad_tests::arithmetic_rows {

/// All ways to broadcast that the loops tell apart: rows, columns and constants of either side, in rows that
/// are divided and in those that are not, and walks over more axes.
std::vector<std::vector<Input>> large_broadcasts() {
  std::vector<std::vector<Input>> lists;
  for (const auto& [a, b] : {std::pair<Shape, Shape>{plane, {517, 1}},
                             {wide, {2, 1}},
                             {wide, {140001}},
                             {tall, {70001, 1}},
                             {{}, plane},
                             {{2, 500, 131}, {2, 1, 131}},
                             {{300, 1, 7}, {101, 1}},
                             {{600, 5, 47}, {600, 1, 47}}}) {
    lists.push_back({a, b});
    lists.push_back({b, a});
  }
  return lists;
}

Op add_op() {
  Op op = arithmetic_op(
      "arithmetic", "add", [](const auto& x) { return x[0] + x[1]; },
      [](double a, double b) { return a + b; });
  op.cases.push_back(make_case(
      {{2, 3}}, [](const auto& x) { return 1.5 + (x[0] + 2.0); },
      naive::map([](double x) { return x + 3.5; })));
  op.large.push_back(make_case(
      {long_vector}, [](const auto& x) { return x[0] + 2.0; }, naive::map([](double x) { return x + 2; })));
  return op;
}

Op sub_op() {
  const auto difference = [](double a, double b) { return a - b; };
  const auto f = [](const auto& x) { return x[0] - x[1]; };
  Op op = arithmetic_op("arithmetic", "sub", f, difference);
  for (Case& large : make_cases(large_broadcasts(), f, naive::binary(difference)))
    op.large.push_back(std::move(large));
  op.cases.push_back(make_case(
      {{2, 3}}, [](const auto& x) { return 1.5 - (x[0] - 2.0); },
      naive::map([](double x) { return 3.5 - x; })));
  return op;
}

Op mul_op() {
  Op op = arithmetic_op(
      "arithmetic", "mul", [](const auto& x) { return x[0] * x[1]; },
      [](double a, double b) { return a * b; });
  op.cases.push_back(make_case(
      {{2, 3}}, [](const auto& x) { return 1.5 * (x[0] * 2.0); },
      naive::map([](double x) { return x * 3; })));
  op.large.push_back(make_case(
      {long_vector}, [](const auto& x) { return x[0] * 1.5; }, naive::map([](double x) { return x * 1.5; })));
  return op;
}

Op div_op() {
  Op op = arithmetic_op(
      "arithmetic", "div", [](const auto& x) { return x[0] / x[1]; },
      [](double a, double b) { return a / b; }, away_from_zero);
  op.cases.push_back(make_case(
      {{{2, 3}, away_from_zero}}, [](const auto& x) { return 1.5 / (x[0] / 2.0); },
      naive::map([](double x) { return 3 / x; })));
  op.large.push_back(make_case(
      {{long_vector, away_from_zero}}, [](const auto& x) { return 1.5 / x[0] + x[0] / 2.5; },
      naive::map([](double x) { return 1.5 / x + x / 2.5; })));
  return op;
}

Op neg_op() {
  return {"arithmetic.neg",
          make_cases(
              {{{2, 3}}, {{}}, {{0}}}, [](const auto& x) { return -x[0]; },
              naive::map([](double x) { return -x; })),
          {},
          make_cases(
              {{long_vector}}, [](const auto& x) { return -x[0]; }, naive::map([](double x) { return -x; }))};
}

Op pow_op() {
  Op op = arithmetic_op(
      "arithmetic", "pow", [](const auto& x) { return pow(x[0] * x[0] + 0.5, x[1]); },
      [](double a, double b) { return std::pow(a * a + 0.5, b); });
  for (const double exponent : {2.0, 3.0, -1.0, 0.0, 1.0, -2.0}) {
    op.cases.push_back({{{{2, 3}, away_from_zero}},
                        [exponent](const auto& x) { return pow(x[0], static_cast<float>(exponent)); },
                        [exponent](const auto& x) { return pow(x[0], exponent); },
                        [exponent](const std::vector<Array<double>>& x) {
                          Array<double> y = x[0];
                          for (double& element : y.storage()) element = std::pow(element, exponent);
                          return y;
                        }});
  }
  op.cases.push_back(make_case(
      {{2, 3}}, [](const auto& x) { return pow(x[0] * x[0] + 0.5, 0.5f); },
      naive::map([](double x) { return std::sqrt(x * x + 0.5); })));
  op.cases.push_back(make_case(
      {{2, 3}}, [](const auto& x) { return pow(x[0] * x[0] + 0.5, -0.5f); },
      naive::map([](double x) { return 1 / std::sqrt(x * x + 0.5); })));
  op.cases.push_back(make_case(
      {{2, 3}}, [](const auto& x) { return xgrad::pow(1.5, x[0]); },
      naive::map([](double x) { return std::pow(1.5, x); })));
  op.large.push_back(make_case(
      {{long_vector, positive}}, [](const auto& x) { return pow(x[0], 3) + pow(x[0], 1.5); },
      naive::map([](double x) { return x * x * x + std::pow(x, 1.5); })));
  op.tails = {[](const auto& x) { return pow(x[0], 3); }};
  return op;
}

Op scaled_add_op() {
  return {"arithmetic.alpha",
          make_cases(
              {{{2, 3}, {3}}, {{3}, {2, 3}}, {{}, {}}},
              [](const auto& x) { return xgrad::add(xgrad::sub(x[0], x[1], 3), x[1], 0.5); },
              naive::binary([](double a, double b) { return a - 2.5 * b; })),
          {},
          make_cases(
              {{long_vector, {1}}}, [](const auto& x) { return xgrad::sub(x[0], x[1], 3); },
              naive::binary([](double a, double b) { return a - 3 * b; }))};
}

Op lerp_op() {
  Op op{"arithmetic.lerp"};
  const auto f = [](const auto& x) { return xgrad::lerp(x[0], x[1], x[2]); };
  const Reference reference = [](const std::vector<Array<double>>& x) {
    return Array<double>(x[0] + x[2] * (x[1] - x[0]));
  };
  op.cases = make_cases(
      {{{2, 3}, {2, 3}, {2, 3}}, {{2, 3}, {3}, {}}, {{3}, {2, 1}, {4, 1, 1}}, {{}, {}, {}}, {{0}, {1}, {}}},
      f, reference);
  op.cases.push_back(make_case(
      {{2, 3}, {3}}, [](const auto& x) { return xgrad::lerp(x[0], x[1], 0.25); },
      naive::binary([](double a, double b) { return 0.75 * a + 0.25 * b; })));
  op.large = make_cases({{plane, plane, {403}}}, f, reference);
  op.errors = {error<ShapeError>("lerp: shapes must broadcast, got start (2, 3) and end (4)",
                                 [] { xgrad::lerp(x(2, 3), x(4), x(3)); }),
               error<ShapeError>("lerp: shapes must broadcast, got start (2) and end (3)",
                                 [] { xgrad::lerp(x(2), x(3), 0.5); }),
               error<ShapeError>("lerp: shapes must broadcast, got start and end (2, 3) and weight (2)",
                                 [] { xgrad::lerp(x(2, 3), x(3), x(2)); })};
  return op;
}

const Rows rows([] {
  return std::vector<Op>{
      add_op(),
      sub_op(),
      mul_op(),
      div_op(),
      neg_op(),
      pow_op(),
      scaled_add_op(),
      arithmetic_op(
          "arithmetic", "maximum", [](const auto& x) { return xgrad::maximum(x[0], x[1]); },
          [](double a, double b) { return std::max(a, b); }),
      arithmetic_op(
          "arithmetic", "minimum", [](const auto& x) { return xgrad::minimum(x[0], x[1]); },
          [](double a, double b) { return std::min(a, b); }),
      arithmetic_op(
          "arithmetic", "hypot", [](const auto& x) { return xgrad::hypot(x[0], x[1]); },
          [](double a, double b) { return std::hypot(a, b); }, away_from_zero, away_from_zero),
      lerp_op()};
});

/// f, which is add or sub, with attrs.alpha times the second operand.
template <class T, class F>
Variable<T> scaled(const Call<T>& c, const F& f) {
  const T alpha = static_cast<T>(c.number("alpha", 1));
  if (c.size() == 1) return f(c.x(), c.scalar("other") * alpha);
  return alpha == 1 ? f(c.x(), c.x(1)) : f(c.x(), c.x(1), alpha);
}

const Conformance conformance{
    {"add", [](const auto& c) { return scaled(c, [](const auto&... a) { return add(a...); }); }},
    {"sub", [](const auto& c) { return scaled(c, [](const auto&... a) { return sub(a...); }); }},
    {"mul", [](const auto& c) { return c.size() == 1 ? mul(c.x(), c.scalar("other")) : mul(c.x(), c.x(1)); }},
    {"div", [](const auto& c) { return c.size() == 1 ? div(c.x(), c.scalar("other")) : div(c.x(), c.x(1)); }},
    {"neg", [](const auto& c) { return -c.x(); }},
    {"pow",
     []<class T>(const Call<T>& c) {
       if (c.size() == 1) return pow(c.x(), c.scalar("other"));
       return pow(c.x(), c.is_ids(1) ? Variable<T>(xt::cast<T>(c.ids(1))) : c.x(1));
     }},
    {"maximum", [](const auto& c) { return maximum(c.x(), second(c)); }},
    {"minimum", [](const auto& c) { return minimum(c.x(), second(c)); }},
    {"hypot", [](const auto& c) { return hypot(c.x(), second(c)); }},
    {"lerp", [](const auto& c) {
       return c.size() == 2 ? lerp(c.x(), c.x(1), c.scalar("weight")) : lerp(c.x(), c.x(1), c.x(2));
     }}};

Draw scaled_draw(const char* op) {
  return {op, [op](Drawing& d) {
            const auto [a, b] = broadcasting(d);
            d.call(op, {a, b}, {{"alpha", d.one_of({1.0, -1.0, 0.3, 2.5, 0.0})}});
          }};
}

void draw_pow(Drawing& d) {
  const double exponent = d.one_of({2.0, 3.0, -1.0, 0.0, 1.0, -2.0, 4.0, 0.5, -0.5, 1.5, -1.7});
  const Range bases = exponent == std::round(exponent) ? away_from_zero : positive;
  d.call("pow", {d.within(d.numbers(), bases)}, {{"other", exponent}});
}

Draw extreme_draw(const char* op) {
  return {op, [op](Drawing& d) {
            if (d.chance(0.2)) {
              const Name x = d.numbers();
              const double other = d.uniform(-1, 1);
              if (d.is_clear_of(other, d.value(x))) d.call(op, {x}, {{"other", other}});
              return;
            }
            const auto [a, b] = broadcasting(d);
            if (d.is_clear_of(0, d.result("sub", {a, b}))) d.call(op, {a, b});
          }};
}

void draw_lerp(Drawing& d) {
  const auto [a, b] = broadcasting(d);
  if (d.chance(0.3)) {
    d.call("lerp", {a, b}, {{"weight", d.uniform(-1, 2)}});
  } else {
    const Name& wide = d.rank(a) > d.rank(b) ? a : b;
    d.call("lerp", {a, b, d.numbers(d.narrowed(d.shape(wide)))});
  }
}

const Draws draws{arithmetic_draw("hypot", positive, positive),
                  {"lerp", draw_lerp},
                  arithmetic_draw("add"),
                  arithmetic_draw("sub"),
                  scaled_draw("add"),
                  scaled_draw("sub"),
                  arithmetic_draw("mul", {-5, 5}, {-5, 5}),
                  arithmetic_draw("div", {-5, 5}, away_from_zero),
                  {"neg", [](Drawing& d) { d.call("neg", {d.numbers()}); }},
                  arithmetic_draw("pow", positive, {-2, 2}),
                  {"pow", draw_pow},
                  extreme_draw("maximum"),
                  extreme_draw("minimum")};

/// The gradients of y from a seed of ones.
template <class T>
std::vector<Variable<T>> gradients(const Variable<T>& y, const Inputs<T>& inputs) {
  return grad(y, inputs, {.seed = Variable<T>(Array<T>(y.shape(), T{1}))});
}

template <class T>
void expect_powers_of_zero() {
  const Variable<T> a(Array<T>{0, 0, 0, 2, -2}, true), b(Array<T>{0, 2, -1, 0, 3}, true);
  const Variable<T> y = pow(a, b);
  EXPECT_EQ(y.value(), (Array<T>{1, 0, inf, 1, -8}));
  const auto dx = gradients(y, {a, b});
  expect_near(dx[0].value(), Array<T>{0, 0, -inf, 0, 12}, 1e-6, "da");
  expect_near(dx[1].value(), Array<T>{0, 0, -inf, static_cast<T>(std::log(2.0)), nan}, 1e-6, "db");
  const Variable<T> from_zero = xgrad::pow(0, b);
  EXPECT_EQ(from_zero.value(), (Array<T>{1, 0, inf, 1, 0}));
  EXPECT_EQ(gradients(from_zero, {b})[0].value(), (Array<T>{0, 0, -inf, 0, 0}));
}

TEST(ArithmeticTest, PowersOfZeroAreThoseOfPyTorch) {
  expect_powers_of_zero<float>();
  expect_powers_of_zero<double>();
  const Variable<double> a(0.0, true), b(0.5, true);
  const Variable<double> db = grad(pow(a, b), {b}, {.create_graph = true})[0];
  EXPECT_EQ(grad(db, {a})[0].item(), 0);
}

template <class T>
void expect_powers_of_negative_numbers() {
  const Array<T> a{-1, -1, -0.0, -0.0, -inf, -inf, -8, -2, -1}, b{inf, -inf, 0.5, 3, 0.5, 3, 0.25, -2, nan};
  const Array<T> y = pow(Variable<T>(a), Variable<T>(b)).value();
  expect_near(y, Array<T>{1, 1, 0, -0.0, inf, -inf, nan, 0.25, nan}, 0, "pow");
  EXPECT_FALSE(std::signbit(y(2)));
  EXPECT_TRUE(std::signbit(y(3)));
}

TEST(ArithmeticTest, PowersOfNegativeNumbersAreThoseOfC) {
  expect_powers_of_negative_numbers<float>();
  expect_powers_of_negative_numbers<double>();
}

TEST(ArithmeticTest, ThePowerZeroIsOneWithoutAGradient) {
  const Variable<float> x(Array<float>{0, nan, inf, -3}, true);
  const Variable<float> y = pow(x, 0);
  EXPECT_EQ(y.value(), (Array<float>{1, 1, 1, 1}));
  EXPECT_EQ(gradients(y, {x})[0].value(), (Array<float>{0, 0, 0, 0}));
}

TEST(ArithmeticTest, HypotNeitherOverflowsNorHasAGradientAtTheOrigin) {
  const Variable<float> a(Array<float>{3, 0, 3e38F, 1e-40F, -inf, nan}, true),
      b(Array<float>{-4, 0, 1e38F, 0, 1, 1}, true);
  expect_near(hypot(a, b).value(), Array<float>{5, 0, 3.1622777e38F, 1e-40F, inf, nan}, 1e-7, "hypot");
  const auto dx = gradients(hypot(a, b), {a, b});
  expect_near(dx[0].value(), Array<float>{0.6F, 0, 0.9486833F, 1, nan, nan}, 1e-6, "da");
  expect_near(dx[1].value(), Array<float>{-0.8F, 0, 0.3162278F, 0, 0, nan}, 1e-6, "db");
  EXPECT_EQ(hypot(Variable<float>(3.0f), 4).item(), 5);
}

TEST(ArithmeticTest, MaximumAndMinimumKeepNan) {
  const Variable<float> a(Array<float>{nan, 1, nan, inf, -inf}), b(Array<float>{1, nan, nan, 1, 1});
  expect_near(maximum(a, b).value(), Array<float>{nan, nan, nan, inf, 1}, 0, "maximum");
  expect_near(minimum(a, b).value(), Array<float>{nan, nan, nan, 1, -inf}, 0, "minimum");
}

TEST(ArithmeticTest, EqualOperandsShareTheGradientOfMaximumAndMinimum) {
  const Variable<float> a(Array<float>{1, 2, 3}, true), b(Array<float>{1, 3, 2}, true);
  for (const bool largest : {true, false}) {
    const auto dx = gradients(largest ? maximum(a, b) : minimum(a, b), {a, b});
    const float of_2 = largest ? 0 : 1;
    EXPECT_EQ(dx[0].value(), (Array<float>{0.5, of_2, 1 - of_2}));
    EXPECT_EQ(dx[1].value(), (Array<float>{0.5, 1 - of_2, of_2}));
  }
}

}  // namespace xgrad_tests::arithmetic_rows
