// What there is to test of broadcast_to and sum_to.
#include <xgrad/ops/pointwise/broadcast.hpp>

#include "../common/call.hpp"
#include "../common/draw.hpp"
#include "../common/naive.hpp"
#include "../common/op.hpp"

namespace xgrad_tests::broadcast_rows {

Reference naive_sum_to(Shape shape) {
  return [shape](const naive::Arguments& x) { return naive::sum_over(x[0], shape); };
}

Op broadcast_to_op() {
  Op op{"broadcast.broadcast_to"};
  const std::vector<std::pair<Shape, Shape>> shapes = {
      {{3}, {2, 3}},          {{2, 1}, {2, 3}}, {{}, {2, 3}},     {{1}, {17}},
      {{4, 1, 3}, {4, 5, 3}}, {{2, 3}, {2, 3}}, {{1, 3}, {0, 3}}, {{}, {}}};
  for (const auto& [from, to] : shapes)
    op.cases.push_back(make_case(
        {from}, [to = to](const auto& x) { return xgrad::broadcast_to(x[0], to); }, naive::broadcast_to(to)));
  for (const auto& [from, to] : {std::pair<Shape, Shape>{{403}, plane},
                                 {{517, 1}, plane},
                                 {{2, 1}, wide},
                                 {{140001}, wide},
                                 {{}, long_vector},
                                 {{300, 1, 7}, {300, 101, 7}}})
    op.large.push_back(make_case(
        {from}, [to = to](const auto& x) { return xgrad::broadcast_to(x[0], to); }, naive::broadcast_to(to)));
  op.errors = {error<ShapeError>("broadcast_to: x must broadcast to shape, got x (2, 3) and shape (3)",
                                 [] { xgrad::broadcast_to(x(2, 3), Shape{3}); }),
               error<ShapeError>("broadcast_to: x must broadcast to shape, got x (2) and shape (2, 3)", [] {
                 xgrad::broadcast_to(x(2), Shape{2, 3});
               })};
  return op;
}

Op sum_to_op() {
  Op op{"broadcast.sum_to"};
  const std::vector<std::pair<Shape, Shape>> shapes = {
      {{2, 3}, {3}},       {{2, 3}, {2, 1}}, {{2, 3}, {}},     {{17}, {1}},    {{4, 5, 3}, {4, 1, 3}},
      {{4, 5, 3}, {5, 1}}, {{0, 3}, {3}},    {{2, 3}, {2, 3}}, {{9, 17}, {17}}};
  for (const auto& [from, to] : shapes)
    op.cases.push_back(make_case(
        {from}, [to = to](const auto& x) { return xgrad::sum_to(x[0], to); }, naive_sum_to(to)));
  for (const auto& [from, to] : {std::pair<Shape, Shape>{plane, {403}},
                                 {plane, {517, 1}},
                                 {wide, {140001}},
                                 {wide, {2, 1}},
                                 {{2, 300, 301}, {300, 1}},
                                 {long_vector, {}}})
    op.large.push_back(make_case(
        {from}, [to = to](const auto& x) { return xgrad::sum_to(x[0], to); }, naive_sum_to(to)));
  op.errors = {error<ShapeError>("sum_to: shape must broadcast to x, got x (2, 3) and shape (4)",
                                 [] { xgrad::sum_to(x(2, 3), Shape{4}); })};
  return op;
}

const Rows rows([] { return std::vector<Op>{broadcast_to_op(), sum_to_op()}; });

const Conformance conformance{
    {"broadcast_to", [](const auto& c) { return broadcast_to(c.x(), c.shape("shape")); }},
    {"sum_to", [](const auto& c) { return sum_to(c.x(), c.shape("shape")); }}};

void draw_broadcast_to(Drawing& d) {
  const Shape shape = d.shape();
  d.call("broadcast_to", {d.numbers(d.narrowed(shape))}, {{"shape", listed(shape)}});
}

void draw_sum_to(Drawing& d) {
  const Name x = d.numbers();
  d.call("sum_to", {x}, {{"shape", listed(d.narrowed(d.shape(x)))}});
}

const Draws draws{{"broadcast_to", draw_broadcast_to}, {"sum_to", draw_sum_to}};

}  // namespace xgrad_tests::broadcast_rows
