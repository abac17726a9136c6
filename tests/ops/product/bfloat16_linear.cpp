// What there is to test of linear with a weight of bfloat16 numbers.
#include <xgrad/ops/product/linear.hpp>

#include <bit>
#include <cmath>
#include <limits>
#include <random>

#include <gtest/gtest.h>

#include <xgrad/autograd/gradcheck.hpp>
#include <xgrad/base/random.hpp>
#include <xgrad/ops/attention/detail/packed_self_attention.hpp>
#include <xgrad/ops/index/embedding.hpp>
#include <xgrad/ops/loss/cross_entropy.hpp>
#include <xgrad/ops/loss/linear_cross_entropy.hpp>
#include <xgrad/ops/shape/shapes.hpp>

#include "../../difference.hpp"
#include "../common/call.hpp"
#include "../common/draw.hpp"
#include "../common/expect_near.hpp"
#include "../common/naive.hpp"
#include "../common/op.hpp"

namespace xgrad_tests::bfloat16_linear_rows {

using xgrad::Weight;

/// Drawn numbers (out, in), rounded.
template <class T>
Weight<T> weight_of(const Shape& shape) {
  std::mt19937_64 random(shape[0]);
  return Weight<T>::bfloat16(Array<float>(xt::cast<float>(draw(Input{shape}, random))));
}

Case case_of(std::vector<Input> inputs, const Shape& shape) {
  return make_case(
      std::move(inputs),
      [shape]<class T>(const std::vector<Variable<T>>& x) {
        return x.size() > 1 ? xgrad::linear(x[0], weight_of<T>(shape), x[1])
                            : xgrad::linear(x[0], weight_of<T>(shape));
      },
      [shape](const naive::Arguments& x) {
        naive::Arguments operands{x[0], weight_of<double>(shape).values()};
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
            xgrad::linear(x(2, 3), weight_of<float>({4, 5}));
          }),
      error<ShapeError>(
          "bfloat16_linear: the last axis of x must be weight's last, got x () and weight (4, 5)",
          [] {
            xgrad::linear(x(), weight_of<float>({4, 5}));
          }),
      error<ShapeError>("bfloat16_linear: bias must have shape (4) to fit weight (4, 3), got (3)", [] {
        xgrad::linear(x(2, 3), weight_of<float>({4, 3}), x(3));
      })};
  return std::vector<Op>{op};
});

const Conformance conformance{
    {"bfloat16_linear", []<class T>(const Call<T>& c) {
       return linear(c.x(), Weight<T>::bfloat16(Array<float>(xt::cast<float>(c.x(1).value()))),
                     c.optional(2));
     }}};

void draw_bfloat16_linear(Drawing& d) {
  const Name x = d.numbers(1);
  const std::size_t out = d.length();
  const Name weight = d.constant(Shape{out, d.shape(x).back()}, {-2, 2});
  d.call("bfloat16_linear", {x, weight, d.chance(0.7) ? d.numbers(Shape{out}) : Name()}, {});
}

const Draws draws{{"bfloat16_linear", draw_bfloat16_linear}};

TEST(Bfloat16LinearTest, RoundsToTheNearestAndKeepsWhatFits) {
  const auto rounded = [](float x) {
    return Weight<float>::bfloat16(Array<float>(Shape{1, 1}, x)).values()(0, 0);
  };
  EXPECT_EQ(rounded(1.00390625F), 1);           // a tie, to even
  EXPECT_EQ(rounded(1.01171875F), 1.015625F);   // another, upwards
  EXPECT_EQ(rounded(-1.003907F), -1.0078125F);  // beyond the tie
  EXPECT_EQ(rounded(std::numeric_limits<float>::max()), inf);
  EXPECT_TRUE(std::isnan(rounded(nan)));
  EXPECT_TRUE(std::isnan(rounded(std::bit_cast<float>(0x7fffffffU)))) << "which would be rounded to -0";
  const std::vector<std::uint16_t> bits{0x3f80, 0xc000, 0x7f80, 0x0001};
  const auto weight = Weight<float>::bfloat16(bits, {2, 2});
  EXPECT_EQ(weight.values(), (Array<float>{{1, -2}, {inf, 9.18354962e-41F}}));
  const auto again = Weight<float>::bfloat16(weight.values());
  EXPECT_EQ(std::vector<std::uint16_t>(again.bits().begin(), again.bits().end()), bits);
  EXPECT_EQ(message_of<ShapeError>([&] {
              Weight<float>::bfloat16(bits, {2, 3});
            }),
            "Weight: bfloat16 numbers must fit a shape (out, in), got 4 and (2, 3)");
  EXPECT_EQ(message_of<ShapeError>([] {
              Weight<float>::bfloat16(Array<float>{1, 2});
            }),
            "Weight: bfloat16 numbers must fit a shape (out, in), got 2 and (2)");
}

/// More than a million numbers become floats in blocks.
TEST(Bfloat16LinearTest, ALargeWeightIsThatOfItsFloats) {
  xgrad::manual_seed(1);
  const auto weight = Weight<float>::bfloat16(xgrad::normal<float>({300001, 4}));
  const Variable<float> floats(weight.values()), x(xgrad::normal<float>({9, 4}), true);
  const Variable<float> got = linear(x, weight), want = linear(x, floats);
  EXPECT_LT(relative_difference(got.value(), want.value()), 1e-5);
  const Variable<float> seed(xgrad::normal<float>(want.shape()));
  EXPECT_LT(relative_difference(grad(got, {x}, {.seed = seed})[0].value(),
                                grad(want, {x}, {.seed = seed})[0].value()),
            1e-4);
}

/// Each row's result has the same bits beside any other rows.
TEST(Bfloat16LinearTest, ARowDoesNotDependOnTheOthers) {
  const Weight<float> weight = weight_of<float>({77, 203});
  std::mt19937_64 random(1);
  const Array<float> x = xt::cast<float>(draw(Input{Shape{8, 203}}, random));
  const Array<float> whole = linear(Variable<float>(x), weight).value();
  for (std::size_t count = 1; count < 8; ++count) {
    const Array<float> some = xt::view(x, xt::range(0, count));
    EXPECT_EQ(linear(Variable<float>(some), weight).value(),
              Array<float>(xt::view(whole, xt::range(0, count))));
  }
}

/// A loss, and its gradient of x.
std::pair<Array<double>, Array<double>> loss_of(const auto& weight, const Variable<double>& x,
                                                xgrad::Reduction reduction) {
  const Variable<double> bias(Array<double>(xt::linspace<double>(-1, 1, 40)));
  const xgrad::Ids target{3, -100, 39, 0, 7};
  const Variable<double> loss =
      linear_cross_entropy(x, weight, target, {.linear_bias = bias, .reduction = reduction});
  const Variable<double> seed(loss.value() + 2.5);
  return {loss.value(), grad(loss, {x}, {.seed = seed})[0].value()};
}

TEST(Bfloat16LinearTest, TheLossOfItsClassesIsThatOfItsFloats) {
  std::mt19937_64 random(2);
  const Variable<double> x(draw(Input{Shape{5, 9}}, random), true);
  const Weight<double> weight = weight_of<double>({40, 9});
  for (const auto reduction : {xgrad::Reduction::none, xgrad::Reduction::sum, xgrad::Reduction::mean}) {
    const auto got = loss_of(weight, x, reduction),
               want = loss_of(Variable<double>(weight.values()), x, reduction);
    EXPECT_LT(relative_difference(got.first, want.first), 1e-12);
    EXPECT_LT(relative_difference(got.second, want.second), 1e-12);
  }
  const auto loss = [&](const std::vector<Variable<double>>& x) {
    return linear_cross_entropy(x[0], weight, {3, -100, 39, 0, 7});
  };
  EXPECT_TRUE(xgrad::gradgradcheck(loss, {x}));
}

TEST(Bfloat16LinearTest, AttentionIsThatOfItsProjections) {
  std::mt19937_64 random(3);
  const Variable<double> x(draw(Input{Shape{2, 5, 6}}, random), true), bias(draw(Input{Shape{8}}, random));
  const Weight<double> k = weight_of<double>({8, 6}), v = weight_of<double>({8, 6});
  const Variable<double> q(draw(Input{Shape{8, 6}}, random), true);
  const xgrad::AttentionOptions options{.is_causal = true, .num_heads = 2};
  const Variable<double> got = self_attention(x, {q, bias}, {k}, {v, bias}, {}, options);
  EXPECT_EQ(got.value(),
            scaled_dot_product_attention(linear(x, q, bias), linear(x, k), linear(x, v, bias), {}, options)
                .value());
  const Variable<double> packed =
      xgrad::detail::packed_self_attention(flatten(x, 0, 1), {q, bias}, {k}, {v, bias}, {5, 5}, options);
  EXPECT_LT(relative_difference(packed.value(), flatten(got, 0, 1).value()), 1e-12);
}

TEST(Bfloat16LinearTest, IntegersHaveNoRowsOfAnEmbeddingAndNoGradientOfALoss) {
  const auto weight = Weight<float>::int8(Array<float>{{1, 2}, {3, 4}});
  EXPECT_EQ(message_of<ValueError>([&] {
              embedding(xgrad::Ids{0, 1}, weight);
            }),
            "embedding: weight must not be of integers, got (2, 2) of them");
  const Variable<float> x(Array<float>{{1, 2}}, true);
  EXPECT_EQ(
      message_of<ValueError>([&] { linear_cross_entropy(x, weight, xgrad::Ids{1}); }),
      "linear_cross_entropy: 8-bit weights have no gradient: freeze all parameters in front of them, or "
      "compute with NoGrad");
  const Variable<float> constant = x.detach();
  EXPECT_NEAR(linear_cross_entropy(constant, weight, xgrad::Ids{1}).item(),
              cross_entropy(linear(constant, weight), xgrad::Ids{1}).item(), 1e-6);
}

}  // namespace xgrad_tests::bfloat16_linear_rows
