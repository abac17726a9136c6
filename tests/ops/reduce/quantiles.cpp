// What there is to test of medians and quantiles.
#include <xgrad/ops/reduce/quantiles.hpp>

#include <algorithm>
#include <cmath>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include <xgrad/ops/reduce/reductions.hpp>
#include <xgrad/ops/shape/shapes.hpp>

#include "../common/call.hpp"
#include "../common/draw.hpp"
#include "../common/expect_near.hpp"
#include "../common/naive.hpp"
#include "../common/op.hpp"

namespace xgrad_tests::quantiles_rows {

using naive::at, naive::generated, naive::with, naive::Numbers, naive::Arguments;
using xgrad::Interpolation;

/// What `choose` makes of each sorted line along the axis, which is kept.
template <class Choose>
Numbers of_lines(const Numbers& x, std::size_t axis, Choose choose) {
  if (x.dimension() == 0) return x;
  return generated(with(x.shape(), axis, 1), [&](const Shape& index) {
    std::vector<double> line;
    for (std::size_t i = 0; i < x.shape()[axis]; ++i) line.push_back(at(x, with(index, axis, i)));
    std::sort(line.begin(), line.end());
    return choose(line);
  });
}

double naive_median(const std::vector<double>& sorted) { return sorted[(sorted.size() - 1) / 2]; }

auto naive_quantile(double q) {
  return [q](const std::vector<double>& sorted) {
    const double rank = q * static_cast<double>(sorted.size() - 1);
    const auto below = static_cast<std::size_t>(rank);
    return sorted[below] +
           (rank - std::floor(rank)) * (sorted[std::min(below + 1, sorted.size() - 1)] - sorted[below]);
  };
}

constexpr Range spread{-200, 200, 0};  // for few ties

template <class F, class Choose>
Op quantile_op(const std::string& name, const F& f, const Choose& choose) {
  Op op{"quantiles." + name};
  const auto sample = [&](const Shape& shape, int dim, std::size_t axis, bool keepdim, Range range) {
    return make_case(
        {{shape, range}}, [=](const auto& x) { return f(x[0], dim, keepdim); },
        [=](const Arguments& x) {
          const Numbers y = of_lines(x[0], axis, choose);
          return keepdim || shape.empty() ? y : naive::reshaped(y, naive::without(shape, axis));
        });
  };
  for (const bool keepdim : {false, true}) {
    for (const auto& [shape, dim, axis] : std::vector<std::tuple<Shape, int, std::size_t>>{
             {{5}, 0, 0}, {{1}, -1, 0}, {{2, 4}, 0, 0}, {{2, 4}, -1, 1}, {{3, 8, 2}, 1, 1}, {{0, 3}, 1, 1}})
      op.cases.push_back(sample(shape, dim, axis, keepdim, {}));
  }
  op.cases.push_back(sample({}, 0, 0, false, {}));
  op.large = {sample(plane, 1, 1, false, spread), sample({5, 129, 331}, 1, 1, true, spread)};
  op.errors = {
      error<IndexError>(name + ": axis 2 is out of range for x (2, 3)", [f] { f(x(2, 3), 2, false); }),
      error<ValueError>(name + ": there are no elements to choose from in x (2, 0)",
                        [f] { f(x(2, 0), 1, false); })};
  return op;
}

const Rows rows([] {
  return std::vector<Op>{quantile_op(
                             "median",
                             [](const auto& x, int dim, bool keepdim) {
                               return xgrad::median(x, dim, {.keepdim = keepdim}).values;
                             },
                             naive_median),
                         quantile_op(
                             "quantile",
                             [](const auto& x, int dim, bool keepdim) {
                               return xgrad::quantile(x, 0.375, dim, {.keepdim = keepdim});
                             },
                             naive_quantile(0.375))};
});

Interpolation interpolation_of(const std::string& name) {
  const std::vector<std::string> names = {"linear", "lower", "higher", "midpoint", "nearest"};
  return static_cast<Interpolation>(std::find(names.begin(), names.end(), name) - names.begin());
}

const Conformance conformance{{"median",
                               []<class T>(const Call<T>& c) {
                                 if (!c.has_attr("dim")) return Results<T>{median(c.x())};
                                 const auto found = median(c.x(), c.dim(), {.keepdim = c.flag("keepdim")});
                                 return Results<T>{found.values, as_numbers<T>(found.indices)};
                               }},
                              {"quantile", []<class T>(const Call<T>& c) {
                                 if (!c.has_attr("dim")) return quantile(c.x(), c.scalar("q"));
                                 std::vector<T> q{c.scalar("q")};
                                 if (c.has_attr("second")) q.push_back(c.scalar("second"));
                                 return quantile(c.x(), q, c.dim(),
                                                 {.interpolation = interpolation_of(c.text("interpolation")),
                                                  .keepdim = c.flag("keepdim")});
                               }}};

/// Whether no two elements are so near to each other that rounding could change their order.
bool are_apart(const Array<double>& x) {
  std::vector<double> sorted(x.storage().begin(), x.storage().end());
  std::sort(sorted.begin(), sorted.end());
  const double near = x.size() > 1000 ? 1e-5 : 1e-2;
  for (std::size_t i = 1; i < sorted.size(); ++i)
    if (sorted[i] - sorted[i - 1] < near) return false;
  return x.size() > 0;
}

void draw_median(Drawing& d) {
  const Name x = d.numbers();
  if (!are_apart(d.value(x))) return;
  if (d.chance(0.2)) {
    d.call("median", {x}, {{"dim", nullptr}});
  } else {
    d.call("median", {x}, {{"dim", d.axis(x)}, {"keepdim", d.chance(0.5)}}, 2);
  }
}

void draw_quantile(Drawing& d) {
  const Name x = d.numbers();
  if (!are_apart(d.value(x))) return;
  const double q = d.one_of({0.0, 0.3, 0.55, 1.0});  // no rank of them is near to a half
  if (d.chance(0.2)) {
    d.call("quantile", {x}, {{"dim", nullptr}, {"q", q}});
  } else {
    d.call("quantile", {x},
           {{"dim", d.axis(x)},
            {"q", q},
            {"second", 0.8},
            {"keepdim", d.chance(0.5)},
            {"interpolation", d.one_of<std::string>({"linear", "linear", "lower", "higher", "midpoint"})}});
  }
}

const Draws draws{{"median", draw_median}, {"quantile", draw_quantile}};

TEST(QuantilesTest, AreThoseOfPyTorch) {
  const Variable<double> x(Array<double>{3, 1, 2, 7}, true);
  const std::vector<double> q = {0, 0.25, 0.5, 0.6, 0.9, 1};
  const auto of = [&](Interpolation interpolation) {
    return quantile(x, q, 0, {.interpolation = interpolation}).value();
  };
  expect_near(of(Interpolation::linear), Array<double>{1, 1.75, 2.5, 2.8, 5.8, 7}, 1e-15, "linear");
  expect_near(of(Interpolation::lower), Array<double>{1, 1, 2, 2, 3, 7}, 0, "lower");
  expect_near(of(Interpolation::higher), Array<double>{1, 2, 3, 3, 7, 7}, 0, "higher");
  expect_near(of(Interpolation::midpoint), Array<double>{1, 1.5, 2.5, 2.5, 5, 7}, 0, "midpoint");
  expect_near(of(Interpolation::nearest), Array<double>{1, 2, 3, 3, 7, 7}, 0, "nearest");
  EXPECT_DOUBLE_EQ(quantile(x, 0.4).item(), 2.2);
  expect_near(grad(quantile(x, 0.4), {x})[0].value(), Array<double>{0.2, 0, 0.8, 0}, 1e-15, "gradient");
  EXPECT_EQ(quantile(x, 1).item(), 7);
}

TEST(QuantilesTest, ListsGiveAFirstAxis) {
  const Variable<double> x(Array<double>{{1, 2, 3}, {5, 7, 9}});
  EXPECT_EQ(quantile(x, {0.5, 0.0}, 1).value(), (Array<double>{{2, 7}, {1, 5}}));
  const Variable<double> kept = quantile(x, {0.5}, 1, {.keepdim = true});
  EXPECT_EQ(kept.shape(), (Shape{1, 2, 1}));
  EXPECT_EQ(xgrad::reshape(kept, {2}).value(), (Array<double>{2, 7}));
  EXPECT_EQ(quantile(x, std::vector<double>{}, 1).shape(), (Shape{0, 2}));
  EXPECT_EQ(message_of<ValueError>([&] { quantile(x, 1.5); }), "quantile: q must be in [0, 1], got 1.5");
}

TEST(QuantilesTest, NanAndInfinitiesArePassedOn) {
  const Variable<double> x(Array<double>{{3, nan, 1}, {inf, 5, 6}}, true);
  const auto middle = median(x, 1);
  EXPECT_TRUE(std::isnan(middle.values.value()(0)));
  EXPECT_EQ(middle.values.value()(1), 6);
  EXPECT_EQ(middle.indices, ids_of({2}, {1, 2}));
  EXPECT_TRUE(std::isnan(quantile(x, 0.1, 1).value()(0)));
  EXPECT_EQ(quantile(x, 0.5, 1).value()(1), 6);
  EXPECT_EQ(quantile(x, 1, 1).value()(1), inf);
  const Variable<double> row(Array<double>{inf, 5, 6});
  EXPECT_EQ(quantile(row, {0.25, 1.0}, 0).value(), (Array<double>{5.5, inf}));
  EXPECT_TRUE(std::isnan(median(x).item()));
}

TEST(QuantilesTest, TheMedianOfAnEvenNumberIsTheLower) {
  const Variable<float> x(Array<float>{3, 1, 2, 2, 5, 4}, true);
  EXPECT_EQ(median(x).item(), 2);
  EXPECT_EQ(grad(median(x), {x})[0].value(), (Array<float>{0, 0, 0, 1, 0, 0}));
}

TEST(QuantilesTest, BetweenInfinitiesAreThoseOfTheOrder) {
  const Variable<double> x(Array<double>{-inf, 0, 3, inf, inf}, true);
  EXPECT_EQ(quantile(x, {0.1, 0.2, 0.9}, 0).value(), (Array<double>{-inf, -inf, inf}));
  EXPECT_EQ(quantile(x, {0.1, 0.9}, 0, {.interpolation = Interpolation::midpoint}).value(),
            (Array<double>{-inf, inf}));
  expect_near(grad(quantile(x, 0.1), {x})[0].value(), Array<double>{0.6, 0.4, 0, 0, 0}, 1e-15, "gradient");
  EXPECT_TRUE(std::isnan(quantile(Variable<float>(Array<float>{-inf, inf}), 0.5).item()));
}

TEST(QuantilesTest, TheElementsMayBeFartherApartThanTheRange) {
  const Variable<float> x(Array<float>{3e38F, -3e38F}, true);
  const Array<float> y = quantile(x, {0.25F, 0.5F, 0.75F}, 0).value();
  EXPECT_FLOAT_EQ(y(0), -1.5e38F);
  EXPECT_EQ(y(1), 0);
  EXPECT_FLOAT_EQ(y(2), 1.5e38F);
  EXPECT_EQ(grad(quantile(x, 0.25), {x})[0].value(), (Array<float>{0.25F, 0.75F}));
}

TEST(QuantilesTest, RanksOfManyElementsHaveFractions) {
  Array<float> steps(Shape{10000001}, 0.0F);
  std::fill(steps.begin() + 9000000, steps.end(), 1.0F);
  EXPECT_NEAR(quantile(Variable<float>(steps), 0.9F).item(), 10000000 * double{0.9F} - 8999999, 1e-6);
}

}  // namespace xgrad_tests::quantiles_rows
