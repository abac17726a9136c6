#pragma once

// What the files of functions of single elements have in common.

#include <cmath>
#include <string>
#include <utility>
#include <vector>

#include "call.hpp"
#include "draw.hpp"
#include "naive.hpp"
#include "op.hpp"

namespace xgrad_tests {

/// The row of a function of each element; `range` is where it is drawn from.
template <class F>
Op elementwise_op(const std::string& header, const char* name, const F& f, double (*reference)(double),
                  Range range = {}, const Shape& large = long_vector) {
  std::vector<std::vector<Input>> lists;
  for (const Shape& shape :
       {Shape{}, Shape{1}, Shape{2, 3}, Shape{17}, Shape{5, 33}, Shape{0}, Shape{2, 0, 3}})
    lists.push_back({{shape, range}});
  return {header + "." + name,
          make_cases(lists, f, naive::map(reference)),
          {},
          make_cases({{{large, range}}}, f, naive::map(reference)),
          {f}};
}

/// The row of a function, with that of another form of it, such as that of other attributes.
inline Op joined(Op op, const Op& form) {
  op.cases.insert(op.cases.end(), form.cases.begin(), form.cases.end());
  op.large.insert(op.large.end(), form.large.begin(), form.large.end());
  op.tails.insert(op.tails.end(), form.tails.begin(), form.tails.end());
  return op;
}

/// The row of a function of two elements, which broadcasts; the ranges are where they are drawn from.
template <class F>
Op arithmetic_op(const std::string& header, const char* name, const F& f, double (*reference)(double, double),
                 Range second = {}, Range first = {}) {
  const std::vector<std::pair<Shape, Shape>> shapes = {
      {{2, 3}, {2, 3}},    {{2, 3}, {3}},      {{3}, {2, 3}},     {{2, 3}, {2, 1}},    {{2, 1}, {1, 3}},
      {{}, {2, 3}},        {{2, 3}, {}},       {{}, {}},          {{4, 1, 3}, {5, 1}}, {{1, 1, 1}, {3}},
      {{17}, {17}},        {{3, 17}, {17}},    {{9, 17}, {9, 1}}, {{0}, {1}},          {{2, 0}, {1, 1}},
      {{2, 1, 4}, {3, 1}}, {{2, 3, 4}, {3, 4}}};
  std::vector<std::vector<Input>> lists;
  for (const auto& [a, b] : shapes) lists.push_back({{a, first}, {b, second}});
  const std::vector<std::vector<Input>> large = {{{plane, first}, {plane, second}},
                                                 {{plane, first}, {Shape{403}, second}}};
  const auto message = [name](const char* rest) { return std::string(name) + rest; };
  return {header + "." + name,
          make_cases(lists, f, naive::binary(reference)),
          {error<ShapeError>(message(": shapes must broadcast, got a (2, 3) and b (4)"),
                             [f] {
                               f(Inputs<float>{x(2, 3), x(4)});
                             }),
           error<ShapeError>(message(": shapes must broadcast, got a (2, 1, 3) and b (2, 2)"),
                             [f] {
                               f(Inputs<float>{x(2, 1, 3), x(2, 2)});
                             }),
           error<ShapeError>(message(": shapes must broadcast, got a (0) and b (2)"),
                             [f] {
                               f(Inputs<float>{x(0), x(2)});
                             })},
          make_cases(large, f, naive::binary(reference))};
}

/// The second operand: an input, or the number attrs.other.
template <class T>
Variable<T> second(const Call<T>& c) {
  return c.size() > 1 ? c.x(1) : Variable<T>(c.scalar("other"));
}

/// A call on elements of the range that are clear of the kinks.
inline Draw elementwise_draw(const char* op, Range range = {-10, 10}, std::vector<double> kinks = {}) {
  return {op, [=](Drawing& d) {
            const Name x = d.within(d.numbers(), range);
            for (const double kink : kinks) {
              if (!d.is_clear_of(kink, d.value(x))) return;
            }
            d.call(op, {x});
          }};
}

/// A call of two operands in these ranges, or of one and a number in the second's.
inline Draw arithmetic_draw(const char* op, Range first = {-30, 30}, Range second = {-30, 30}) {
  return {op, [=](Drawing& d) {
            if (d.chance(0.2)) {
              const double other = d.one_of({1.0, 0.5, 1.7}) * (second.low < 0 ? d.one_of({1.0, -1.0}) : 1);
              d.call(op, {d.within(d.numbers(), first)}, {{"other", other}});
              return;
            }
            const auto [a, b] = broadcasting(d);
            d.call(op, {d.within(a, first), d.within(b, second)});
          }};
}

}  // namespace xgrad_tests
