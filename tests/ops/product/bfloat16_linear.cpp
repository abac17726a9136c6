// What there is to test of bfloat16_linear.
#include <xgrad/ops/product/bfloat16_linear.hpp>

#include <bit>
#include <cmath>
#include <limits>
#include <random>

#include <gtest/gtest.h>

#include <xgrad/base/random.hpp>
#include <xgrad/ops/product/linear.hpp>

#include "../../difference.hpp"
#include "../common/call.hpp"
#include "../common/draw.hpp"
#include "../common/expect_near.hpp"
#include "../common/naive.hpp"
#include "../common/op.hpp"

namespace xgrad_tests::bfloat16_linear_rows {

using xgrad::Bfloat16Weight;

/// Drawn numbers (out, in), rounded.
Bfloat16Weight weight_of(const Shape& shape) {
  std::mt19937_64 random(shape[0]);
  return Bfloat16Weight(Array<float>(xt::cast<float>(draw(Input{shape}, random))));
}

Case case_of(std::vector<Input> inputs, const Shape& shape) {
  const Bfloat16Weight weight = weight_of(shape);
  return make_case(
      std::move(inputs),
      [weight](const auto& x) {
        return x.size() > 1 ? xgrad::bfloat16_linear(x[0], weight, x[1])
                            : xgrad::bfloat16_linear(x[0], weight);
      },
      [weight](const naive::Arguments& x) {
        naive::Arguments operands{x[0], xt::cast<double>(weight.floats())};
        operands.insert(operands.end(), x.begin() + 1, x.end());
        return naive::linear()(operands);
      });
}

const Rows rows([] {
  Op op{"bfloat16_linear"};
  op.cases = {case_of({{2, 3}, {4}}, {4, 3}),    case_of({{3}}, {4, 3}),
              case_of({{2, 5, 3}, {4}}, {4, 3}), case_of({{0, 3}, {4}}, {4, 3}),
              case_of({{2, 0}, {4}}, {4, 0}),    case_of({{8, 70}, {33}}, {33, 70}),
              case_of({{9, 19}}, {23, 19})};
  op.large = {case_of({{2101, 5}, {43}}, {43, 5}), case_of({{3, 301}, {1003}}, {1003, 301}),
              case_of({{5, 600}}, {301, 600})};
  op.errors = {
      error<ShapeError>(
          "bfloat16_linear: the last axis of x must be weight's last, got x (2, 3) and weight (4, 5)",
          [] {
            xgrad::bfloat16_linear(x(2, 3), weight_of({4, 5}));
          }),
      error<ShapeError>(
          "bfloat16_linear: the last axis of x must be weight's last, got x () and weight (4, 5)",
          [] {
            xgrad::bfloat16_linear(x(), weight_of({4, 5}));
          }),
      error<ShapeError>("bfloat16_linear: bias must have shape (4) to fit weight (4, 3), got (3)", [] {
        xgrad::bfloat16_linear(x(2, 3), weight_of({4, 3}), x(3));
      })};
  return std::vector<Op>{op};
});

const Conformance conformance{{"bfloat16_linear", []<class T>(const Call<T>& c) {
                                 return bfloat16_linear(
                                     c.x(), Bfloat16Weight(Array<float>(xt::cast<float>(c.x(1).value()))),
                                     c.optional(2));
                               }}};

void draw_bfloat16_linear(Drawing& d) {
  const Name x = d.numbers(1);
  const std::size_t out = d.length();
  const Name weight = d.constant(Shape{out, d.shape(x).back()}, {-2, 2});
  d.call("bfloat16_linear", {x, weight, d.chance(0.7) ? d.numbers(Shape{out}) : Name()}, {});
}

const Draws draws{{"bfloat16_linear", draw_bfloat16_linear}};

TEST(Bfloat16WeightTest, RoundsToTheNearestAndKeepsWhatFits) {
  const auto rounded = [](float x) { return Bfloat16Weight(Array<float>(Shape{1, 1}, x)).floats()(0, 0); };
  EXPECT_EQ(rounded(1.00390625F), 1);           // a tie, to even
  EXPECT_EQ(rounded(1.01171875F), 1.015625F);   // another, upwards
  EXPECT_EQ(rounded(-1.003907F), -1.0078125F);  // beyond the tie
  EXPECT_EQ(rounded(std::numeric_limits<float>::max()), inf);
  EXPECT_TRUE(std::isnan(rounded(nan)));
  EXPECT_TRUE(std::isnan(rounded(std::bit_cast<float>(0x7fffffffU)))) << "which would be rounded to -0";
  const std::vector<std::uint16_t> bits{0x3f80, 0xc000, 0x7f80, 0x0001};
  const Bfloat16Weight weight(bits, {2, 2});
  EXPECT_EQ(weight.floats(), (Array<float>{{1, -2}, {inf, 9.18354962e-41F}}));
  const Bfloat16Weight again(weight.floats());
  EXPECT_EQ(std::vector<std::uint16_t>(again.bits().begin(), again.bits().end()), bits);
  EXPECT_EQ(message_of<ShapeError>([&] {
              Bfloat16Weight(bits, {2, 3});
            }),
            "Bfloat16Weight: the numbers must fit a shape (out, in), got 4 and (2, 3)");
  EXPECT_EQ(message_of<ShapeError>([] {
              Bfloat16Weight(Array<float>{1, 2});
            }),
            "Bfloat16Weight: weight must be (out, in), got (2)");
}

/// More than a million numbers become floats in blocks.
TEST(Bfloat16LinearTest, ALargeWeightIsThatOfItsFloats) {
  xgrad::manual_seed(1);
  const Bfloat16Weight weight(xgrad::normal<float>({300001, 4}));
  const Variable<float> floats(weight.floats()), x(xgrad::normal<float>({9, 4}), true);
  const Variable<float> got = bfloat16_linear(x, weight), want = linear(x, floats);
  EXPECT_LT(relative_difference(got.value(), want.value()), 1e-5);
  const Variable<float> seed(xgrad::normal<float>(want.shape()));
  EXPECT_LT(relative_difference(grad(got, {x}, {.seed = seed})[0].value(),
                                grad(want, {x}, {.seed = seed})[0].value()),
            1e-4);
}

/// Each row's result has the same bits beside any other rows.
TEST(Bfloat16LinearTest, ARowDoesNotDependOnTheOthers) {
  const Bfloat16Weight weight = weight_of({77, 203});
  std::mt19937_64 random(1);
  const Array<float> x = xt::cast<float>(draw(Input{Shape{8, 203}}, random));
  const Array<float> whole = bfloat16_linear(Variable<float>(x), weight).value();
  for (std::size_t count = 1; count < 8; ++count) {
    const Array<float> some = xt::view(x, xt::range(0, count));
    EXPECT_EQ(bfloat16_linear(Variable<float>(some), weight).value(),
              Array<float>(xt::view(whole, xt::range(0, count))));
  }
}

}  // namespace xgrad_tests::bfloat16_linear_rows
