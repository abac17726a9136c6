// What there is to test of outer, tensordot and cross.
#include <xgrad/ops/product/tensordot.hpp>

#include <algorithm>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "../common/call.hpp"
#include "../common/draw.hpp"
#include "../common/naive.hpp"
#include "../common/op.hpp"

namespace xgrad_tests::tensordot_rows {

using naive::at, naive::for_each_index, naive::generated, naive::with, naive::Numbers, naive::Arguments;

Numbers naive_outer(const Arguments& x) {
  return generated({x[0].size(), x[1].size()},
                   [&](const Shape& index) { return x[0].data()[index[0]] * x[1].data()[index[1]]; });
}

Op outer_op() {
  Op op{"tensordot.outer"};
  const auto f = [](const auto& x) { return xgrad::outer(x[0], x[1]); };
  op.cases = make_cases({{{3}, {4}}, {{1}, {5}}, {{0}, {3}}, {{17}, {9}}}, f, naive_outer);
  op.large = make_cases({{{517}, {403}}}, f, naive_outer);
  op.errors = {error<ShapeError>("outer: a and b must be vectors, got a (2, 3) and b (3)",
                                 [] { xgrad::outer(x(2, 3), x(3)); })};
  return op;
}

using Axes = std::vector<std::size_t>;

/// The sum over pairs of axes, by loops over all of both arrays.
Reference naive_tensordot(Axes of_a, Axes of_b) {
  return [=](const Arguments& x) {
    const auto rest = [](const Shape& index, const Axes& summed) {
      Shape kept;
      for (std::size_t k = 0; k < index.size(); ++k)
        if (std::find(summed.begin(), summed.end(), k) == summed.end()) kept.push_back(index[k]);
      return kept;
    };
    Shape shape = rest(x[0].shape(), of_a);
    for (const std::size_t length : rest(x[1].shape(), of_b)) shape.push_back(length);
    Numbers y = naive::filled(shape, 0);
    for_each_index(x[0].shape(), [&](const Shape& i) {
      for_each_index(x[1].shape(), [&](const Shape& k) {
        for (std::size_t pair = 0; pair < of_a.size(); ++pair)
          if (i[of_a[pair]] != k[of_b[pair]]) return;
        Shape to = rest(i, of_a);
        for (const std::size_t place : rest(k, of_b)) to.push_back(place);
        at(y, to) += at(x[0], i) * at(x[1], k);
      });
    });
    return y;
  };
}

Op tensordot_op() {
  Op op{"tensordot.tensordot"};
  const auto sample = [](const Shape& a, const Shape& b, const Axes& of_a, const Axes& of_b) {
    const xgrad::Dims left(of_a.begin(), of_a.end()), right(of_b.begin(), of_b.end());
    return make_case(
        {a, b}, [=](const auto& x) { return xgrad::tensordot(x[0], x[1], left, right); },
        naive_tensordot(of_a, of_b));
  };
  op.cases = {sample({2, 3, 4}, {4, 3, 5}, {1, 2}, {1, 0}),
              sample({2, 3}, {3, 4}, {1}, {0}),
              sample({2, 3}, {2, 4}, {0}, {0}),
              sample({3}, {3}, {0}, {0}),
              sample({2, 3}, {4}, {}, {}),
              sample({2, 3, 2}, {2, 2, 3}, {2, 0, 1}, {0, 1, 2}),
              sample({2, 0}, {0, 3}, {1}, {0})};
  op.cases.push_back(make_case(
      {{2, 3, 4}, {3, 4, 2}}, [](const auto& x) { return xgrad::tensordot(x[0], x[1]); },
      naive_tensordot({1, 2}, {0, 1})));
  op.cases.push_back(make_case(
      {{2, 3, 4}, {4, 2}}, [](const auto& x) { return xgrad::tensordot(x[0], x[1], 1); },
      naive_tensordot({2}, {0})));
  op.large = {sample({40, 30, 20}, {30, 20, 5}, {1, 2}, {0, 1})};
  op.errors = {
      error<ShapeError>(
          "tensordot: axis 1 of a and axis 0 of b must have one length, got a (2, 3) and b (2, 4)",
          [] { xgrad::tensordot(x(2, 3), x(2, 4), 1); }),
      error<ValueError>("tensordot: a and b must have as many axes to sum over, got 1 and 2",
                        [] {
                          xgrad::tensordot(x(2, 3), x(2, 3), {0}, {0, 1});
                        }),
      error<ValueError>("tensordot: axis 1 of a is there twice",
                        [] {
                          xgrad::tensordot(x(2, 3), x(3, 3), {1, -1}, {0, 1});
                        }),
      error<IndexError>("tensordot: axis 2 is out of range for b (3, 2)",
                        [] { xgrad::tensordot(x(2, 3), x(3, 2), {1}, {2}); }),
      error<ValueError>("tensordot: dims must not be negative, nor more than a and b have axes, got 2 for a "
                        "(2, 3) and b (3)",
                        [] { xgrad::tensordot(x(2, 3), x(3)); })};
  return op;
}

Reference naive_cross(std::size_t axis) {
  return [axis](const Arguments& x) {
    return generated(naive::stretched(x[0].shape(), x[1].shape()), [&](const Shape& index) {
      const std::size_t next = (index[axis] + 1) % 3, last = (index[axis] + 2) % 3;
      const auto element = [&](std::size_t i, std::size_t place) {
        return x[i].data()[naive::position(x[i].shape(), with(index, axis, place))];
      };
      return element(0, next) * element(1, last) - element(0, last) * element(1, next);
    });
  };
}

Op cross_op() {
  Op op{"tensordot.cross"};
  const auto sample = [](const Shape& a, const Shape& b, int dim, std::size_t axis) {
    return make_case(
        {a, b}, [dim](const auto& x) { return xgrad::cross(x[0], x[1], dim); }, naive_cross(axis));
  };
  op.cases = {sample({3}, {3}, -1, 0), sample({2, 3}, {2, 3}, 1, 1), sample({3, 4}, {3, 1}, 0, 0),
              sample({1, 3}, {5, 3}, -1, 1), sample({0, 3}, {1, 3}, -1, 1)};
  op.large = {sample({70001, 3}, {70001, 3}, -1, 1)};
  op.errors = {
      error<ShapeError>(
          "cross: a and b must have as many axes and length 3 along axis 1, got a (3, 2) and b (3, 2)",
          [] { xgrad::cross(x(3, 2), x(3, 2)); }),
      error<ShapeError>(
          "cross: a and b must have as many axes and length 3 along axis 1, got a (2, 3) and b (3)",
          [] { xgrad::cross(x(2, 3), x(3)); }),
      error<IndexError>("cross: axis 2 is out of range for a and b (2, 3)",
                        [] { xgrad::cross(x(2, 3), x(2, 3), 2); }),
      error<ShapeError>("cross: shapes must broadcast, got a (2, 3) and b (4, 3)",
                        [] { xgrad::cross(x(2, 3), x(4, 3)); })};
  return op;
}

const Rows rows([] { return std::vector<Op>{outer_op(), tensordot_op(), cross_op()}; });

const Conformance conformance{
    {"outer", [](const auto& c) { return outer(c.x(), c.x(1)); }},
    {"tensordot", [](const auto& c) { return tensordot(c.x(), c.x(1), c.dims("dims_a"), c.dims("dims_b")); }},
    {"cross", [](const auto& c) { return cross(c.x(), c.x(1), c.dim()); }}};

void draw_tensordot(Drawing& d) {
  const Name a = d.numbers();
  const Shape& shape = d.shape(a);
  std::vector<std::ptrdiff_t> of_a = d.order(shape.size());
  of_a.resize(d.below(shape.size() + 1));
  // the summed axes of a in another order, and another one
  const std::vector<std::ptrdiff_t> order = d.order(of_a.size());
  Shape other(of_a.size());
  for (std::size_t k = 0; k < of_a.size(); ++k)
    other[static_cast<std::size_t>(order[k])] = shape[static_cast<std::size_t>(of_a[k])];
  if (d.chance(0.6)) other.push_back(1 + d.below(4));
  d.call("tensordot", {a, d.numbers(other)}, {{"dims_a", of_a}, {"dims_b", order}});
}

void draw_cross(Drawing& d) {
  Shape shape = d.shape(1, 3);
  const std::size_t axis = d.below(shape.size());
  shape[axis] = 3;
  Shape other = shape;
  for (std::size_t k = 0; k < other.size(); ++k)
    if (k != axis && d.chance(0.2)) other[k] = 1;
  d.call("cross", {d.numbers(shape), d.numbers(other)}, {{"dim", static_cast<std::ptrdiff_t>(axis)}});
}

const Draws draws{{"outer",
                   [](Drawing& d) {
                     d.call("outer", {d.numbers(Shape{d.length()}), d.numbers(Shape{d.length()})});
                   }},
                  {"tensordot", draw_tensordot},
                  {"cross", draw_cross}};

TEST(TensordotTest, CrossIsThatOfPyTorch) {
  const Variable<float> a(Array<float>{{1, 2, 3}, {0, 0, 1}}), b(Array<float>{{4, 5, 6}, {1, 0, 0}});
  EXPECT_EQ(cross(a, b).value(), (Array<float>{{-3, 6, -3}, {0, 1, 0}}));
}

}  // namespace xgrad_tests::tensordot_rows
