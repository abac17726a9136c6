// What there is to test and to measure of the operations of two inputs that broadcast.
#include <xgrad/ops/arithmetic.hpp>

#ifndef XGRAD_BENCH_OPS

#include <algorithm>
#include <cmath>

#include "common/call.hpp"
#include "common/naive.hpp"
#include "common/op.hpp"

namespace xgrad_tests {
namespace {

Reference naive_sum_to(Shape shape) {
  return [shape](const naive::Arguments& x) { return naive::sum_over(x[0], shape); };
}

template <class F>
Op arithmetic_op(const char* name, const F& f, double (*reference)(double, double), Range second = {}) {
  const std::vector<std::pair<Shape, Shape>> shapes = {
      {{2, 3}, {2, 3}},    {{2, 3}, {3}},      {{3}, {2, 3}},     {{2, 3}, {2, 1}},    {{2, 1}, {1, 3}},
      {{}, {2, 3}},        {{2, 3}, {}},       {{}, {}},          {{4, 1, 3}, {5, 1}}, {{1, 1, 1}, {3}},
      {{17}, {17}},        {{3, 17}, {17}},    {{9, 17}, {9, 1}}, {{0}, {1}},          {{2, 0}, {1, 1}},
      {{2, 1, 4}, {3, 1}}, {{2, 3, 4}, {3, 4}}};
  std::vector<std::vector<Input>> lists;
  for (const auto& [a, b] : shapes) lists.push_back({a, {b, second}});
  const auto message = [name](const char* rest) { return std::string(name) + rest; };
  return {std::string("arithmetic.") + name,
          make_cases(lists, f, naive::binary(reference)),
          {error<ShapeError>(message(": shapes must broadcast, got a (2, 3) and b (4)"),
                             [f] {
                               f(Inputs<float>{x(2, 3), x(4)});
                             }),
           error<ShapeError>(message(": shapes must broadcast, got a (2, 1, 3) and b (2, 2)"),
                             [f] {
                               f(Inputs<float>{x(2, 1, 3), x(2, 2)});
                             }),
           error<ShapeError>(message(": shapes must broadcast, got a (0) and b (2)"), [f] {
             f(Inputs<float>{x(0), x(2)});
           })}};
}

Op add_op() {
  Op op = arithmetic_op(
      "add", [](const auto& x) { return x[0] + x[1]; }, [](double a, double b) { return a + b; });
  op.cases.push_back(make_case(
      {{2, 3}}, [](const auto& x) { return 1.5 + (x[0] + 2.0); },
      naive::map([](double x) { return x + 3.5; })));
  return op;
}

Op sub_op() {
  Op op = arithmetic_op(
      "sub", [](const auto& x) { return x[0] - x[1]; }, [](double a, double b) { return a - b; });
  op.cases.push_back(make_case(
      {{2, 3}}, [](const auto& x) { return 1.5 - (x[0] - 2.0); },
      naive::map([](double x) { return 3.5 - x; })));
  return op;
}

Op mul_op() {
  Op op = arithmetic_op(
      "mul", [](const auto& x) { return x[0] * x[1]; }, [](double a, double b) { return a * b; });
  op.cases.push_back(make_case(
      {{2, 3}}, [](const auto& x) { return 1.5 * (x[0] * 2.0); },
      naive::map([](double x) { return x * 3; })));
  return op;
}

Op div_op() {
  Op op = arithmetic_op(
      "div", [](const auto& x) { return x[0] / x[1]; }, [](double a, double b) { return a / b; },
      away_from_zero);
  op.cases.push_back(make_case(
      {{{2, 3}, away_from_zero}}, [](const auto& x) { return 1.5 / (x[0] / 2.0); },
      naive::map([](double x) { return 3 / x; })));
  return op;
}

Op neg_op() {
  return {"arithmetic.neg",
          make_cases(
              {{{2, 3}}, {{}}, {{0}}}, [](const auto& x) { return -x[0]; },
              naive::map([](double x) { return -x; })),
          {}};
}

Op pow_op() {
  Op op = arithmetic_op(
      "pow", [](const auto& x) { return pow(x[0] * x[0] + 0.5, x[1]); },
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
  return op;
}

Op scaled_add_op() {
  return {"arithmetic.alpha",
          make_cases(
              {{{2, 3}, {3}}, {{3}, {2, 3}}, {{}, {}}},
              [](const auto& x) { return xgrad::add(xgrad::sub(x[0], x[1], 3), x[1], 0.5); },
              naive::binary([](double a, double b) { return a - 2.5 * b; })),
          {}};
}

Op broadcast_to_op() {
  Op op{"arithmetic.broadcast_to"};
  const std::vector<std::pair<Shape, Shape>> shapes = {
      {{3}, {2, 3}},          {{2, 1}, {2, 3}}, {{}, {2, 3}},     {{1}, {17}},
      {{4, 1, 3}, {4, 5, 3}}, {{2, 3}, {2, 3}}, {{1, 3}, {0, 3}}, {{}, {}}};
  for (const auto& [from, to] : shapes)
    op.cases.push_back(make_case(
        {from}, [to = to](const auto& x) { return xgrad::broadcast_to(x[0], to); }, naive::broadcast_to(to)));
  op.errors = {error<ShapeError>("broadcast_to: x must stretch to shape, got x (2, 3) and shape (3)",
                                 [] { xgrad::broadcast_to(x(2, 3), Shape{3}); }),
               error<ShapeError>("broadcast_to: x must stretch to shape, got x (2) and shape (2, 3)", [] {
                 xgrad::broadcast_to(x(2), Shape{2, 3});
               })};
  return op;
}

Op sum_to_op() {
  Op op{"arithmetic.sum_to"};
  const std::vector<std::pair<Shape, Shape>> shapes = {
      {{2, 3}, {3}},       {{2, 3}, {2, 1}}, {{2, 3}, {}},     {{17}, {1}},    {{4, 5, 3}, {4, 1, 3}},
      {{4, 5, 3}, {5, 1}}, {{0, 3}, {3}},    {{2, 3}, {2, 3}}, {{9, 17}, {17}}};
  for (const auto& [from, to] : shapes)
    op.cases.push_back(make_case(
        {from}, [to = to](const auto& x) { return xgrad::sum_to(x[0], to); }, naive_sum_to(to)));
  op.errors = {error<ShapeError>("sum_to: shape must stretch to x, got x (2, 3) and shape (4)",
                                 [] { xgrad::sum_to(x(2, 3), Shape{4}); })};
  return op;
}

const Rows rows([] {
  return std::vector<Op>{add_op(),
                         sub_op(),
                         mul_op(),
                         div_op(),
                         neg_op(),
                         pow_op(),
                         scaled_add_op(),
                         broadcast_to_op(),
                         sum_to_op(),
                         arithmetic_op(
                             "maximum", [](const auto& x) { return xgrad::maximum(x[0], x[1]); },
                             [](double a, double b) { return std::max(a, b); }),
                         arithmetic_op(
                             "minimum", [](const auto& x) { return xgrad::minimum(x[0], x[1]); },
                             [](double a, double b) { return std::min(a, b); })};
});

/// The second operand: an input, or the number attrs.other.
template <class T>
Variable<T> second(const Call<T>& c) {
  return c.size() > 1 ? c.x(1) : Variable<T>(c.scalar("other"));
}

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
    {"minimum", [](const auto& c) { return minimum(c.x(), second(c)); }}};

}  // namespace
}  // namespace xgrad_tests

#else  // bench_ops

#include "common/bench.hpp"

namespace bench {
namespace {

const Rows rows("arithmetic", [](const Sizes& s) -> std::vector<Row> {
  return {
      {"add", {{s.flat}, {s.flat}}, [](auto& a) { return add(a[0], a[1]); }},
      {"sub", {{s.flat}, {s.flat}}, [](auto& a) { return sub(a[0], a[1]); }},
      {"mul", {{s.flat}, {s.flat}}, [](auto& a) { return mul(a[0], a[1]); }},
      {"div", {{s.flat}, positive(s.flat)}, [](auto& a) { return div(a[0], a[1]); }},
      {"pow", {positive(s.flat), {s.flat}}, [](auto& a) { return pow(a[0], a[1]); }},
      {"pow 3", {{s.flat}}, [](auto& a) { return pow(a[0], 3); }},
      {"maximum", {{s.flat}, {s.flat}}, [](auto& a) { return maximum(a[0], a[1]); }},
      {"minimum", {{s.flat}, {s.flat}}, [](auto& a) { return minimum(a[0], a[1]); }},
      {"add a row", {{s.matrix}, {s.row}}, [](auto& a) { return add(a[0], a[1]); }},
      {"add a column", {{s.matrix}, {{s.rows, 1}}}, [](auto& a) { return add(a[0], a[1]); }},
  };
});

}  // namespace
}  // namespace bench

#endif
