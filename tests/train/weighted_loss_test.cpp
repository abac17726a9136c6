#include <xgrad/train/weighted_loss.hpp>

#include <cmath>
#include <limits>

#include <gtest/gtest.h>

#include <xgrad/base/error.hpp>
#include <xgrad/ops.hpp>

#include "expect_error.hpp"

namespace weighted_loss_test {

using xgrad::Array, xgrad::backward_mean, xgrad::Variable, xgrad_tests::message_of;

TEST(WeightedLossTest, TheGradientIsThatOfTheMean) {
  const Variable<double> w(Array<double>{1.0, -2.0, 4.0}, true), unused(Array<double>{1.0}, true);
  const xgrad::BatchLoss loss =
      backward_mean<double>({.sum = sum(square(w)), .weight = 8, .tokens = 5}, {w, unused});
  EXPECT_EQ(loss.mean(), 21.0 / 8);
  EXPECT_EQ(loss.tokens, 5u);
  EXPECT_EQ(w.grad().value(), (Array<double>{0.25, -0.5, 1.0}));
  EXPECT_FALSE(unused.has_grad());
}

TEST(WeightedLossTest, TheWeightIsPositiveAndFinite) {
  const Variable<double> w(Array<double>{1.0}, true);
  for (const double weight : {0.0, -1.0, std::numeric_limits<double>::infinity(), std::nan("")}) {
    const std::string error =
        message_of<xgrad::ValueError>([&] { backward_mean<double>({.sum = sum(w), .weight = weight}, {w}); });
    EXPECT_TRUE(error.starts_with("backward_mean: the weight must be positive and finite, got ")) << error;
    EXPECT_FALSE(w.has_grad());
  }
}

TEST(WeightedLossTest, GradientsOfBeforeAreNotScaled) {
  const Variable<double> w(Array<double>{1.0}, true);
  sum(w).backward();
  EXPECT_EQ(message_of<xgrad::ValueError>([&] { backward_mean<double>({.sum = sum(w), .weight = 4}, {w}); }),
            "backward_mean: parameters must have no gradients before, got one of parameter 0");
  EXPECT_EQ(w.grad().value(), Array<double>{1.0});
}

}  // namespace weighted_loss_test
