#include <cmath>
#include <limits>

#include <gtest/gtest.h>

#include <xgrad/autograd/gradcheck.hpp>
#include <xgrad/models/distributions.hpp>
#include <xgrad/ops/pointwise/elementwise.hpp>
#include <xgrad/ops/reduce/reductions.hpp>

#include "expect_error.hpp"

namespace distributions_test {

using xgrad::Array, xgrad::Ids, xgrad::Shape, xgrad::Variable;
using xgrad::Bernoulli, xgrad::Categorical, xgrad::Normal;
using xgrad_tests::message_of;

constexpr double infinity = std::numeric_limits<double>::infinity();

/// The numbers that PyTorch 2.13 draws after torch.manual_seed(7), one call after the other.
TEST(DistributionsTest, SamplesArePyTorchs) {
  xgrad::manual_seed(7);
  const Normal<float> normal(Variable<float>(Array<float>{1, -2, 0.5}),
                             Variable<float>(Array<float>{0.5, 2, 1}));
  const Array<float> few = normal.rsample({2}).value();
  const Array<float> want{{0.926602483F, -0.427717447F, 1.44682169F},
                          {0.442828F, 1.38158035F, -0.394827902F}};
  EXPECT_EQ(few.shape(), (Shape{2, 3}));
  for (std::size_t i = 0; i < want.size(); ++i) EXPECT_NEAR(few.data()[i], want.data()[i], 1e-6) << i;
  const Array<float> many = normal.sample({6}).value();
  const float starts[] = {1.30473673F, -3.16226768F, -0.884961367F, 1.25178194F, -2.16705656F, 0.476522058F};
  for (std::size_t i = 0; i < 6; ++i) EXPECT_NEAR(many.data()[i], starts[i], 3e-6) << i;

  const Bernoulli<float> coins({.probs = Variable<float>(Array<float>{0.1F, 0.5F, 0.9F})});
  EXPECT_EQ(coins.sample({4}).value(), (Array<float>{{0, 1, 1}, {1, 1, 1}, {0, 1, 1}, {0, 1, 1}}));
  const Bernoulli<double> of_logits({.logits = Variable<double>(Array<double>{{0.1, 0.5}, {-1, 2}})});
  EXPECT_EQ(of_logits.sample({2}).value(), (Array<double>{{{0, 1}, {1, 1}}, {{0, 1}, {1, 1}}}));

  const Categorical<float> classes({.probs = Variable<float>(Array<float>{{1, 2, 3}, {3, 1, 0}})});
  EXPECT_EQ(classes.sample({5}), (Ids{{0, 0}, {2, 0}, {1, 0}, {1, 0}, {2, 1}}));
  EXPECT_EQ(classes.sample(), (Ids{1, 0}));
  const Categorical<double> one({.logits = Variable<double>(Array<double>{0, 1, 2})});
  EXPECT_EQ(one.sample({2, 3}), (Ids{{2, 2, 2}, {2, 2, 2}}));
  EXPECT_EQ(one.sample(), Ids(2));
  EXPECT_NEAR(xgrad::uniform<float>({1})(0), 0.6009454131126404, 1e-7);
}

TEST(DistributionsTest, ASampleHasTheGradientsOfItsParametersIfItIsReparametrized) {
  const auto draw = [](const std::vector<Variable<double>>& x) {
    xgrad::manual_seed(1);
    return sum(square(Normal<double>(x[0], x[1]).rsample({4})));
  };
  const std::vector<Variable<double>> parameters{Variable<double>(Array<double>{0.5, -1}, true),
                                                 Variable<double>(2.0, true)};
  EXPECT_TRUE(xgrad::gradcheck(draw, parameters).ok);
  EXPECT_TRUE(xgrad::gradgradcheck(draw, parameters).ok);
  EXPECT_FALSE(Normal<double>(parameters[0], parameters[1]).sample({4}).requires_grad());
}

TEST(DistributionsTest, DensitiesAddUpToOneAndEntropiesAreTheirMeans) {
  const Variable<double> logits(Array<double>{0.3, -1, 2});
  const Categorical<double> classes({.logits = logits});
  double total = 0, entropy = 0;
  for (std::int64_t c = 0; c < 3; ++c) {
    const double log_prob = classes.log_prob(Ids(c)).item();
    total += std::exp(log_prob);
    entropy -= std::exp(log_prob) * log_prob;
  }
  EXPECT_NEAR(total, 1, 1e-12);
  EXPECT_NEAR(classes.entropy().item(), entropy, 1e-12);

  const Bernoulli<double> coin({.probs = Variable<double>(0.2)});
  EXPECT_NEAR(coin.log_prob(Variable<double>(1.0)).item(), std::log(0.2), 1e-12);
  EXPECT_NEAR(coin.log_prob(Variable<double>(0.0)).item(), std::log(0.8), 1e-12);
  EXPECT_NEAR(coin.entropy().item(), -0.2 * std::log(0.2) - 0.8 * std::log(0.8), 1e-12);
}

TEST(DistributionsTest, WhatCannotBeHasNoDensityAndAnInfiniteDivergence) {
  const auto coin = [](double p) { return Bernoulli<double>({.probs = Variable<double>(p)}); };
  EXPECT_EQ(kl_divergence(coin(0.5), coin(0)).item(), infinity);
  EXPECT_EQ(kl_divergence(coin(0.5), coin(1)).item(), infinity);
  EXPECT_NEAR(kl_divergence(coin(0), coin(0.5)).item(), std::log(2.0), 1e-12);
  EXPECT_NEAR(kl_divergence(coin(1), coin(0.5)).item(), std::log(2.0), 1e-12);
  const auto classes = [](Array<double> p) { return Categorical<double>({.probs = Variable<double>(p)}); };
  EXPECT_EQ(kl_divergence(classes({1, 1, 1}), classes({1, 0, 1})).item(), infinity);
  EXPECT_NEAR(kl_divergence(classes({1, 0, 1}), classes({1, 1, 1})).item(), std::log(1.5), 1e-12);
  EXPECT_NEAR(classes({1, 0, 1}).entropy().item(), std::log(2.0), 1e-12);
}

TEST(DistributionsTest, SamplesOfNothingHaveNoElements) {
  const Categorical<float> classes({.logits = Variable<float>(Array<float>({2, 3}, 0.0F))});
  EXPECT_EQ(classes.sample({0}).shape(), (Shape{0, 2}));
  EXPECT_EQ(Normal<float>(Variable<float>(0.0F), Variable<float>(1.0F)).sample({0, 2}).shape(),
            (Shape{0, 2}));
}

TEST(DistributionsTest, RefusesBadParametersAndValues) {
  const auto refusal = [](auto&& call) { return message_of<xgrad::ValueError>(call); };
  const Variable<float> zero(0.0F), one(1.0F), two(2.0F), row(Array<float>{1, -1});
  EXPECT_EQ(refusal([&] { Normal<float>(zero, zero); }), "Normal: scale must be above 0, got 0");
  EXPECT_EQ(message_of<xgrad::ShapeError>([&] {
              Normal<float>(row, Variable<float>(Array<float>{1, 1, 1}));
            }),
            "Normal: shapes must broadcast, got loc (2) and scale (3)");
  EXPECT_EQ(refusal([&] { Bernoulli<float>({}); }), "Bernoulli: one of probs and logits must be given");
  EXPECT_EQ(refusal([&] { Bernoulli<float>({.probs = one, .logits = one}); }),
            "Bernoulli: one of probs and logits must be given");
  EXPECT_EQ(refusal([&] { Bernoulli<float>({.probs = two}); }), "Bernoulli: probs must be in [0, 1], got 2");
  EXPECT_EQ(refusal([&] { Bernoulli<float>({.probs = one}).log_prob(two); }),
            "Bernoulli: value must be 0 or 1, got 2");
  EXPECT_EQ(refusal([&] { Categorical<float>({}); }), "Categorical: one of probs and logits must be given");
  EXPECT_EQ(refusal([&] { Categorical<float>({.probs = row}); }),
            "Categorical: probs must be at least 0, got -1");
  EXPECT_EQ(refusal([&] {
              Categorical<float>({.probs = Variable<float>(Array<float>{0, 0})});
            }),
            "Categorical: the sum of probs must be above 0 and finite, got 0");
  const Variable<float> unknown(Array<float>{0, std::nanf("")}), nothing(Array<float>({2}, -infinity));
  EXPECT_EQ(refusal([&] { Normal<float>(unknown, one); }), "Normal: loc must not be nan");
  EXPECT_EQ(refusal([&] { Normal<float>(zero, one).log_prob(unknown); }), "Normal: value must not be nan");
  EXPECT_EQ(refusal([&] { Bernoulli<float>({.logits = unknown}); }), "Bernoulli: logits must not be nan");
  for (const Variable<float>& logits : {unknown, nothing}) {
    EXPECT_EQ(refusal([&] { Categorical<float>({.logits = logits}); }),
              "Categorical: logits must not be nan or inf, nor all -inf along the last axis");
  }
  EXPECT_EQ(message_of<xgrad::ShapeError>([&] { Categorical<float>({.logits = one}); }),
            "Categorical: there must be an axis of classes, got ()");
  EXPECT_EQ(message_of<xgrad::IndexError>([&] {
              Categorical<float>({.logits = row}).log_prob(Ids{0, 2});
            }),
            "Categorical: value must be in [0, 2), got 2");
}

}  // namespace distributions_test
