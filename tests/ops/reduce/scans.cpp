// What there is to test of the running sums and products.
#include <xgrad/ops/reduce/scans.hpp>

#include <algorithm>
#include <cmath>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include <xgrad/autograd/gradcheck.hpp>
#include <xgrad/ops/reduce/reductions.hpp>

#include "../common/call.hpp"
#include "../common/draw.hpp"
#include "../common/naive.hpp"
#include "../common/op.hpp"

namespace xgrad_tests::scans_rows {

using naive::at, naive::for_each_index, naive::with, naive::Numbers, naive::Arguments;

Reference scanned(std::size_t axis, double (*combine)(double, double)) {
  return [=](const Arguments& x) {
    Numbers y = x[0];
    for_each_index(y.shape(), [&](const Shape& index) {
      if (!index.empty() && index[axis] > 0)
        at(y, index) = combine(at(y, with(index, axis, index[axis] - 1)), at(x[0], index));
    });
    return y;
  };
}

struct Sample {
  Shape shape;
  int dim;
  std::size_t axis;
};

template <class F>
std::vector<Case> scan_cases(const std::vector<Sample>& samples, Range range, const F& f,
                             double (*combine)(double, double)) {
  std::vector<Case> cases;
  for (const auto& [shape, dim, axis] : samples) {
    cases.push_back(make_case(
        {Input(shape, range)}, [f, dim = dim](const auto& x) { return f(x[0], dim); },
        scanned(axis, combine)));
  }
  return cases;
}

/// `large_range`: of elements whose sums or products, of thousands, are no smaller than they are.
template <class F>
Op scan_op(const std::string& name, const F& f, double (*combine)(double, double), Range large_range) {
  Op op{"scans." + name};
  op.cases = scan_cases({{{5}, 0, 0},
                         {{1}, -1, 0},
                         {{}, 0, 0},
                         {{}, -1, 0},
                         {{0}, 0, 0},
                         {{0, 3}, 1, 1},
                         {{3, 0}, 1, 1},
                         {{2, 3}, 0, 0},
                         {{2, 3}, -1, 1},
                         {{2, 3, 4}, 1, 1},
                         {{3, 8}, 1, 1},
                         {{2, 17}, 1, 1},
                         {{9, 2}, 0, 0},
                         {{3, 1, 2}, 1, 1}},
                        {}, f, combine);
  op.large = scan_cases({{{517, 403}, 1, 1},
                         {{517, 403}, 0, 0},
                         {{5, 129, 331}, 1, 1},
                         {{2, 70001}, 1, 1},
                         {{3, 90, 700}, 1, 1}},
                        large_range, f, combine);
  op.errors = {error<IndexError>(name + ": axis 2 is out of range for x (2, 3)", [f] { f(x(2, 3), 2); }),
               error<IndexError>(name + ": axis -3 is out of range for x (2, 3)", [f] { f(x(2, 3), -3); }),
               error<IndexError>(name + ": axis 1 is out of range for x ()", [f] { f(x(), 1); })};
  return op;
}

const Rows rows([] {
  Op sums = scan_op(
      "cumsum", [](const auto& x, int dim) { return xgrad::cumsum(x, dim); },
      [](double a, double b) { return a + b; }, {0.5, 2});
  Op products = scan_op(
      "cumprod", [](const auto& x, int dim) { return xgrad::cumprod(x, dim); },
      [](double a, double b) { return a * b; }, {0.9999, 1.0001});
  Op logarithms = scan_op(
      "logcumsumexp", [](const auto& x, int dim) { return xgrad::logcumsumexp(x, dim); },
      [](double a, double b) { return std::log(std::exp(a) + std::exp(b)); }, {-2, 2});
  // of 70001 terms, the reference's own rounding is more than a difference shows
  logarithms.large.erase(logarithms.large.begin() + 3);
  Op largest = scan_op(
      "cummax", [](const auto& x, int dim) { return xgrad::cummax(x, dim).values; },
      [](double a, double b) { return std::max(a, b); }, {-2, 2});
  Op smallest = scan_op(
      "cummin", [](const auto& x, int dim) { return xgrad::cummin(x, dim).values; },
      [](double a, double b) { return std::min(a, b); }, {-2, 2});
  return std::vector<Op>{std::move(sums), std::move(products), std::move(logarithms), std::move(largest),
                         std::move(smallest)};
});

template <class T>
Results<T> both(const xgrad::Ranked<T>& ranked) {
  return {ranked.values, as_numbers<T>(ranked.indices)};
}

const Conformance conformance{{"logcumsumexp", [](const auto& c) { return logcumsumexp(c.x(), c.dim()); }},
                              {"cummax", [](const auto& c) { return both(cummax(c.x(), c.dim())); }},
                              {"cummin", [](const auto& c) { return both(cummin(c.x(), c.dim())); }},
                              {"cumsum", [](const auto& c) { return cumsum(c.x(), c.dim()); }},
                              {"cumprod", [](const auto& c) { return cumprod(c.x(), c.dim()); }}};

void draw_cumsum(Drawing& d) {
  const Name x = d.numbers();
  d.call("cumsum", {x}, {{"dim", d.axis(x)}});
}

/// Perhaps of zeros, too.
void draw_cumprod(Drawing& d) {
  Name x = d.within(d.numbers(), {-1.5, 1.5});
  if (d.chance(0.3)) x = drawn(d, "masked_fill", {x, d.mask(d.shape(x))}, {{"value", 0.0}});
  d.call("cumprod", {x}, {{"dim", d.axis(x)}});
}

void draw_logcumsumexp(Drawing& d) {
  const Name x = d.within(d.numbers(), {-20, 20});
  d.call("logcumsumexp", {x}, {{"dim", d.axis(x)}});
}

/// Of elements that are clear of each other.
Draw extreme_draw(const char* op) {
  return {op, [op](Drawing& d) {
            const Name x = d.numbers();
            std::vector<double> sorted(d.value(x).storage().begin(), d.value(x).storage().end());
            std::sort(sorted.begin(), sorted.end());
            const double near = sorted.size() > 1000 ? 1e-5 : 1e-2;
            for (std::size_t i = 1; i < sorted.size(); ++i)
              if (sorted[i] - sorted[i - 1] < near) return;
            d.call(op, {x}, {{"dim", d.axis(x)}}, 2);
          }};
}

const Draws draws{{"cumsum", draw_cumsum},
                  {"cumprod", draw_cumprod},
                  {"logcumsumexp", draw_logcumsumexp},
                  extreme_draw("cummax"),
                  extreme_draw("cummin")};

TEST(ScansTest, OfEqualElementsTheLastIsTheExtreme) {
  for (const std::size_t columns : {1, 3}) {
    Array<float> elements = Array<float>::from_shape({7, columns});
    const float column[] = {1, 1, nan, 2, nan, 3, inf};
    for (std::size_t i = 0; i < elements.size(); ++i) elements.data()[i] = column[i / columns];
    const Variable<float> x(elements, true);
    const auto largest = cummax(x, 0), smallest = cummin(x, 0);
    const std::int64_t places[] = {0, 1, 2, 2, 4, 4, 4};
    for (std::size_t i = 0; i < elements.size(); ++i) {
      EXPECT_EQ(largest.indices.data()[i], places[i / columns]);
      EXPECT_EQ(smallest.indices.data()[i], places[i / columns]);
    }
    EXPECT_EQ(grad(sum(largest.values), {x})[0].value()(4, 0), 3);
  }
  EXPECT_EQ(cummin(Variable<float>(Array<float>{2, 2, 3, -0.0F, 0}), 0).indices,
            ids_of({5}, {0, 1, 1, 3, 4}));
}

TEST(ScansTest, LogarithmsOfSumsNeitherOverflowNorVanish) {
  const Variable<float> x(Array<float>{-inf, -inf, -1000, 1000, 1000, -inf}, true);
  const Variable<float> y = logcumsumexp(x, 0);
  const float ln_2 = 0.6931472F;
  EXPECT_EQ(y.value(), (Array<float>{-inf, -inf, -1000, 1000, 1000 + ln_2, 1000 + ln_2}));
  const Variable<float> dx = grad(sum(y), {x}, {.create_graph = true})[0];
  const Array<float> expected{0, 0, 1, 2, 1, 0};
  for (std::size_t i = 0; i < 6; ++i) EXPECT_NEAR(dx.value()(i), expected(i), 1e-4) << i;
  const Array<float> second = grad(sum(dx * dx), {x})[0].value();
  for (const float element : second.storage()) EXPECT_TRUE(std::isfinite(element));
}

TEST(ScansTest, GradientsOfProductsAreRightBesideZeros) {
  const Variable<double> x(Array<double>{2, 0, 3, 0, 5}, true);
  EXPECT_EQ(cumprod(x, 0).value(), (Array<double>{2, 0, 0, 0, 0}));
  const Variable<double> seed(Array<double>{1, 10, 100, 1000, 10000});
  const Variable<double> dx = grad(cumprod(x, 0), {x}, {.seed = seed, .create_graph = true})[0];
  EXPECT_EQ(dx.value(), (Array<double>{1, 620, 0, 0, 0}));
  EXPECT_EQ(grad(sum(dx), {x}, {.create_graph = true})[0].value()(1), 310 + 200 + 306000);
  const auto product = [](const std::vector<Variable<double>>& in) { return cumprod(in[0], 0); };
  EXPECT_TRUE(xgrad::gradcheck(product, {x}));
  EXPECT_TRUE(xgrad::gradgradcheck(product, {x}));
}

TEST(ScansTest, GradientsOfProductsOfFloatsMayGoThroughLargeOnes) {
  for (const std::size_t columns : {1, 2}) {
    Array<float> elements = Array<float>::from_shape({4, columns});
    for (std::size_t i = 0; i < elements.size(); ++i) elements.data()[i] = i < 2 * columns ? 1e-30f : 1e30f;
    const Variable<float> x(elements, true);
    EXPECT_FLOAT_EQ(cumprod(x, 0).value()(3, 0), 1);
    const Array<float> dx = grad(sum(cumprod(x, 0)), {x})[0].value();
    for (std::size_t c = 0; c < columns; ++c) {
      EXPECT_FLOAT_EQ(dx(0, c), 1e30f);
      EXPECT_FLOAT_EQ(dx(1, c), 1e30f);
      EXPECT_FLOAT_EQ(dx(2, c), 1e-30f);
      EXPECT_FLOAT_EQ(dx(3, c), 1e-30f);
    }
  }
}

TEST(ScansTest, SumsOfManyFloatsAreAccurate) {
  for (const auto& [shape, dim] : {std::pair(Shape{1000000}, 0), std::pair(Shape{1000000, 2}, 0)}) {
    const Array<float> y = cumsum(Variable<float>(Array<float>(shape, 0.1f)), dim).value();
    for (std::size_t i = 0; i < 1000000; i += 997) {
      const double expected = 0.1f * static_cast<double>(i + 1);
      ASSERT_NEAR(y.data()[i * (y.size() / 1000000)], expected, 2e-7 * expected) << i;
    }
  }
}

TEST(ScansTest, AnInfinityStaysAndANanBegins) {
  const Variable<float> x(Array<float>{1, inf, 2, -1, -inf, 3, 1, 1, 1, 1}, true);
  const Array<float> y = cumsum(x, 0).value();
  EXPECT_EQ(y(0), 1);
  EXPECT_EQ(y(3), inf);
  for (std::size_t i = 4; i < y.size(); ++i) EXPECT_TRUE(std::isnan(y(i))) << i;
}

}  // namespace xgrad_tests::scans_rows
