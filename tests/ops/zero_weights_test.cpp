// What has the weight or the probability 0 does not count, even if it is infinite: 0 times infinity is no
// nan.

#include <cmath>
#include <limits>
#include <vector>

#include <gtest/gtest.h>

#include <xgrad/autograd/functional.hpp>
#include <xgrad/ops/index/embedding_bag.hpp>
#include <xgrad/ops/loss/cross_entropy.hpp>
#include <xgrad/ops/loss/likelihoods.hpp>
#include <xgrad/ops/loss/losses.hpp>
#include <xgrad/ops/loss/margin_losses.hpp>
#include <xgrad/ops/pointwise/arithmetic.hpp>
#include <xgrad/ops/reduce/reductions.hpp>

namespace {

using xgrad::Array, xgrad::grad, xgrad::Ids, xgrad::KlReduction, xgrad::lerp, xgrad::Reduction, xgrad::sum,
    xgrad::Variable;
using V = Variable<double>;

constexpr double inf = std::numeric_limits<double>::infinity();

Array<double> gradient(const V& y, const V& x) { return grad(sum(y), {x})[0].value(); }

void expect_near(const Array<double>& found, const Array<double>& right) {
  ASSERT_EQ(found.shape(), right.shape());
  for (std::size_t i = 0; i < right.size(); ++i) EXPECT_NEAR(found.data()[i], right.data()[i], 1e-12) << i;
}

}  // namespace

TEST(ZeroWeightsTest, OfADivergence) {
  const V input(Array<double>{-inf, -1, -2}, true), target(Array<double>{0, 0.5, 0.5});
  const V y = kl_div(input, target, KlReduction::sum);
  EXPECT_NEAR(y.item(), 1.5 - std::log(2), 1e-12);
  EXPECT_EQ(gradient(y, input), (Array<double>{0, -0.5, -0.5}));
  EXPECT_EQ(kl_div(V(Array<double>{-inf, inf}), V(Array<double>{0, 0}), KlReduction::none).value(),
            (Array<double>{0, 0}));
  EXPECT_EQ(kl_div(V(-inf), V(0.5), KlReduction::sum).item(), inf);
  EXPECT_TRUE(std::isnan(kl_div(V(std::nan("")), V(0.0), KlReduction::sum).item()));

  const V logs(Array<double>{-inf, -inf, 0}, true), of(Array<double>{-inf, -3, -2}, true);
  const V z = kl_div(of, logs, KlReduction::none, {.log_target = true});
  EXPECT_EQ(z.value(), (Array<double>{0, 0, 2}));
  EXPECT_EQ(gradient(z, of), (Array<double>{0, 0, -1}));
  EXPECT_EQ(gradient(kl_div(of, logs, KlReduction::none, {.log_target = true}), logs),
            (Array<double>{0, 0, 3}));
}

TEST(ZeroWeightsTest, OfProbabilitiesOfClasses) {
  const V logits(Array<double>{{-inf, 0, 1}}, true);
  const double log_sum = std::log(1 + std::exp(1));
  const V y = cross_entropy(logits, Array<double>{{0, 0.25, 0.75}});
  EXPECT_NEAR(y.item(), log_sum - 0.75, 1e-12);
  const double p = 1 / (1 + std::exp(1));
  expect_near(gradient(y, logits), {{0, p - 0.25, 1 - p - 0.75}});
  const Array<double> weight{0, 1, 2};
  const V weighted = cross_entropy(logits, Array<double>{{0.5, 0.25, 0.25}}, {.weight = weight});
  EXPECT_NEAR(weighted.item(), 0.25 * log_sum + 0.5 * (log_sum - 1), 1e-12);
  EXPECT_EQ(cross_entropy(logits, Array<double>{{0.5, 0.5, 0}}).item(), inf);
}

TEST(ZeroWeightsTest, OfClasses) {
  const V logits(Array<double>{{-inf, 0, 1}, {0, 0, 0}}, true);
  const Array<double> weight{0, 1, 1};
  for (const auto reduction : {Reduction::sum, Reduction::mean}) {
    const V y = cross_entropy(logits, Ids{0, 1}, {.weight = weight, .reduction = reduction});
    EXPECT_NEAR(y.item(), std::log(3), 1e-12);
    expect_near(gradient(y, logits), {{0, 0, 0}, {1.0 / 3, -2.0 / 3, 1.0 / 3}});
  }
  const double log_sum = std::log(1 + std::exp(1));
  const V smoothed = cross_entropy(V(Array<double>{{-inf, 0, 1}}), Ids{1},
                                   {.weight = weight, .reduction = Reduction::sum, .label_smoothing = 0.3});
  EXPECT_NEAR(smoothed.item(), 0.8 * log_sum + 0.1 * (log_sum - 1), 1e-12);
  const V even = cross_entropy(V(Array<double>{{-inf, 0, 1}}), Ids{0},
                               {.weight = weight, .reduction = Reduction::sum, .label_smoothing = 1});
  EXPECT_NEAR(even.item(), (2 * log_sum - 1) / 3, 1e-12);

  const V log_probs(Array<double>{{-inf, -1}, {-2, -3}}, true);
  const V nll = nll_loss(log_probs, Ids{0, 1}, {.weight = Array<double>{0, 1}});
  EXPECT_EQ(nll.item(), 3);
  EXPECT_EQ(gradient(nll, log_probs), (Array<double>{{0, 0}, {0, -1}}));

  const V scores(Array<double>{{inf, 0}, {1, 0.5}}, true);
  const V margins = multi_margin_loss(scores, Ids{1, 0}, {.weight = Array<double>{1, 0}});
  EXPECT_EQ(margins.item(), 0.125);
  EXPECT_EQ(gradient(margins, scores), (Array<double>{{0, 0}, {-0.25, 0.25}}));
}

TEST(ZeroWeightsTest, OfLogits) {
  const V x(Array<double>{-inf, inf, inf, -inf}, true), target(Array<double>{0, 1, 0, 1});
  const auto loss = [&](const V& x, const V& target, const V& weight, const V& pos_weight) {
    return binary_cross_entropy_with_logits(
        x, target, {.weight = weight, .pos_weight = pos_weight, .reduction = Reduction::none});
  };
  const V y = loss(x, target, {}, {});
  EXPECT_EQ(y.value(), (Array<double>{0, 0, inf, inf}));
  EXPECT_EQ(gradient(y, x), (Array<double>{0, 0, 1, -1}));
  EXPECT_EQ(loss(x, target, V(Array<double>{1, 1, 0, 0}), {}).value(), (Array<double>{0, 0, 0, 0}));
  const V without_positive = loss(x, target, {}, V(0.0));
  EXPECT_EQ(without_positive.value(), (Array<double>{0, 0, inf, 0}));
  EXPECT_EQ(gradient(without_positive, x), (Array<double>{0, 0, 1, 0}));
  // finite ones beside infinite ones, and between the classes
  const V mixed = loss(V(Array<double>{-inf, 0.5}), V(Array<double>{0, 0.25}), {}, {});
  EXPECT_NEAR(mixed.value()(1), 0.75 * 0.5 + std::log1p(std::exp(-0.5)), 1e-12);
}

TEST(ZeroWeightsTest, OfRowsAndCounts) {
  const V table(Array<double>{{inf, 1}, {2, 3}}, true), weights(Array<double>{{0, 1}}, true);
  const V y = embedding_bag(Ids{{0, 1}}, table, {.mode = xgrad::BagMode::sum, .per_sample_weights = weights});
  EXPECT_EQ(y.value(), (Array<double>{{2, 3}}));
  EXPECT_EQ(gradient(y, table), (Array<double>{{0, 0}, {1, 1}}));

  const V x(Array<double>{-inf, 0}, true);
  const V poisson = poisson_nll_loss(x, V(Array<double>{0, 2}), {.reduction = Reduction::none});
  EXPECT_EQ(poisson.value(), (Array<double>{0, 1}));
  EXPECT_EQ(gradient(poisson, x), (Array<double>{0, -1}));
}

TEST(ZeroWeightsTest, OfEndsBetweenWhichIsInterpolated) {
  const V start(Array<double>{1, inf, inf, 2}, true), end(Array<double>{inf, 2, -inf, 4}, true);
  const V y = lerp(start, end, V(Array<double>{0, 1, 0, 0.25}));
  EXPECT_EQ(y.value(), (Array<double>{1, 2, inf, 2.5}));
  EXPECT_EQ(gradient(y, start), (Array<double>{1, 0, 1, 0.75}));
  EXPECT_EQ(gradient(lerp(start, end, V(Array<double>{0, 1, 0, 0.25})), end), (Array<double>{0, 1, 0, 0.25}));
  EXPECT_EQ(lerp(start, end, 0).value(), start.value());
  EXPECT_EQ(lerp(start, end, 1).value(), end.value());
  EXPECT_TRUE(std::isnan(lerp(V(-inf), V(inf), 0.5).item()));
}

TEST(ZeroWeightsTest, HaveSecondDerivatives) {
  const auto f = [](const V& x) { return kl_div(x, V(Array<double>{0, 1}), KlReduction::sum); };
  EXPECT_EQ(xgrad::hessian(f, Array<double>{-inf, -1}), (Array<double>{{0, 0}, {0, 0}}));
  const auto g = [](const V& x) { return cross_entropy(x, Array<double>{{0, 0.5, 0.5}}); };
  const Array<double> h = xgrad::hessian(g, Array<double>{{-inf, 0, 0}});
  for (std::size_t i = 0; i < 3; ++i) {
    for (std::size_t j = 0; j < 3; ++j)
      EXPECT_NEAR(h(0, i, 0, j), i == 0 || j == 0 ? 0 : i == j ? 0.25 : -0.25, 1e-12) << i << j;
  }
}
