// What there is to test of softmax and log_softmax.
#include <xgrad/ops/norm/softmax.hpp>

#include <cmath>

#include <gtest/gtest.h>

#include <xgrad/ops/index/masked_fill.hpp>

#include "../common/call.hpp"
#include "../common/draw.hpp"
#include "../common/naive.hpp"
#include "../common/op.hpp"

namespace xgrad_tests::softmax_rows {

using naive::at, naive::filled, naive::generated, naive::Arguments, naive::Numbers;

Reference naive_softmax(std::size_t axis) {
  return [axis](const Arguments& x) {
    if (x[0].dimension() == 0) return filled({}, 1);
    const Numbers normalizer = naive::logsumexp(x[0], axis);
    return generated(x[0].shape(),
                     [&](const Shape& index) { return std::exp(at(x[0], index) - at(normalizer, index)); });
  };
}

std::vector<std::pair<Shape, int>> softmax_shapes() {
  return {{{2, 3}, -1}, {{2, 3}, 0}, {{2, 3, 4}, 1}, {{3}, 0},    {{17}, -1},   {{5, 33}, 1},
          {{2, 1}, 1},  {{}, 0},     {{0, 3}, 1},    {{3, 0}, 1}, {{2, 300}, 1}};
}

/// Rows of more than one block of exponentials, of many, and short ones; and columns.
template <class F>
std::vector<Case> large_cases(const F& f, Reference (*reference)(std::size_t)) {
  std::vector<Case> cases;
  for (const auto& [shape, axis] :
       {std::pair<Shape, std::size_t>{{517, 303}, 1}, {{3, 50001}, 1}, {tall, 1}, {{203, 517}, 0}}) {
    cases.push_back(make_case(
        {shape}, [f, dim = static_cast<int>(axis)](const auto& x) { return f(x[0], dim); }, reference(axis)));
  }
  return cases;
}

Op softmax_op() {
  Op op{"softmax"};
  for (const auto& [shape, dim] : softmax_shapes()) {
    const std::size_t axis = dim < 0 ? shape.size() - 1 : static_cast<std::size_t>(dim);
    op.cases.push_back(make_case(
        {shape}, [dim = dim](const auto& x) { return xgrad::softmax(x[0], dim); }, naive_softmax(axis)));
  }
  const Mask masked = mask_of({2, 3}, {0, 1, 0, 1, 1, 0});
  op.cases.push_back(make_case(
      {{2, 3}},
      [masked](const auto& x) { return xgrad::softmax(xgrad::masked_fill(x[0], masked, -INFINITY)); },
      [masked](const std::vector<Array<double>>& x) {
        return naive_softmax(1)({naive::masked_fill(masked, -INFINITY)(x)});
      }));
  op.large = large_cases([](const auto& x, int dim) { return xgrad::softmax(x, dim); }, naive_softmax);
  op.errors = {
      error<IndexError>("softmax: axis 2 is out of range for x (2, 3)", [] { xgrad::softmax(x(2, 3), 2); }),
      error<IndexError>("softmax: axis -3 is out of range for x (2, 3)", [] { xgrad::softmax(x(2, 3), -3); }),
      error<IndexError>("softmax: axis 1 is out of range for x ()", [] { xgrad::softmax(x(), 1); })};
  return op;
}

Op log_softmax_op() {
  Op op{"softmax.log_softmax"};
  for (const auto& [shape, dim] : softmax_shapes()) {
    const std::size_t axis = dim < 0 ? shape.size() - 1 : static_cast<std::size_t>(dim);
    op.cases.push_back(make_case(
        {shape}, [dim = dim](const auto& x) { return xgrad::log_softmax(x[0], dim); },
        naive::log_softmax(axis)));
  }
  op.large =
      large_cases([](const auto& x, int dim) { return xgrad::log_softmax(x, dim); }, naive::log_softmax);
  op.errors = {error<IndexError>("log_softmax: axis 2 is out of range for x (2, 3)",
                                 [] { xgrad::log_softmax(x(2, 3), 2); })};
  return op;
}

const Rows rows([] { return std::vector<Op>{softmax_op(), log_softmax_op()}; });

const Conformance conformance{{"softmax", [](const auto& c) { return softmax(c.x(), c.dim()); }},
                              {"log_softmax", [](const auto& c) { return log_softmax(c.x(), c.dim()); }}};

void draw_softmax(Drawing& d) {
  const Name x = d.numbers();
  d.call("softmax", {x}, {{"dim", d.axis(x)}});
}

/// Over the last axis, of which all elements but the first may be masked.
void draw_masked_softmax(Drawing& d) {
  const Name x = d.numbers(1);
  if (d.shape(x).back() == 0) return;
  Mask mask(Shape{d.shape(x).back()}, false);
  for (std::size_t i = 1; i < mask.size(); ++i) mask(i) = d.chance(0.4);
  const Name masked =
      drawn(d, "masked_fill", {x, d.leaf({{{}, {}, mask}})}, {{"value", std::string("-inf")}});
  d.call("softmax", {masked}, {{"dim", std::ptrdiff_t{-1}}});
}

void draw_log_softmax(Drawing& d) {
  const Name x = d.numbers();
  d.call("log_softmax", {x}, {{"dim", d.axis(x)}});
}

const Draws draws{
    {"softmax", draw_softmax}, {"softmax", draw_masked_softmax}, {"log_softmax", draw_log_softmax}};

TEST(SoftmaxTest, LargeNumbersDoNotOverflow) {
  const Variable<float> x(Array<float>{{1e30f, 1e30f}, {-1e30f, 0}, {1000, 999}});
  const Array<float> y = softmax(x).value(), logs = log_softmax(x).value();
  EXPECT_EQ(y(0, 0), 0.5f);
  EXPECT_EQ(y(1, 0), 0);
  EXPECT_NEAR(y(2, 0), 0.7310586f, 1e-6);
  EXPECT_NEAR(logs(2, 1), -1.3132617f, 1e-6);
  EXPECT_EQ(logs(1, 0), -1e30f);
}

TEST(SoftmaxTest, LogarithmsOfMaskedEntriesAreMinusInfinity) {
  const Array<float> y =
      log_softmax(Variable<float>(Array<float>{{0, -inf, 0}, {-inf, -inf, -inf}, {0, inf, 0}, {nan, 0, 0}}))
          .value();
  EXPECT_NEAR(y(0, 0), -std::log(2.0), 1e-6);
  EXPECT_EQ(y(0, 1), -inf);
  for (const std::size_t row : {1, 2, 3}) EXPECT_TRUE(std::isnan(y(row, 1))) << row;
}

TEST(SoftmaxTest, MaskedEntriesAreExactlyZeroAndAMaskedRowIsNan) {
  const Variable<float> x(Array<float>{{1, -inf, 2}, {-inf, -inf, -inf}});
  const Array<float> y = softmax(x).value();
  EXPECT_EQ(y(0, 1), 0);
  EXPECT_TRUE(std::isnan(y(1, 0)));
}

}  // namespace xgrad_tests::softmax_rows
