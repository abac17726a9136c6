// What there is to test of the negative log likelihoods of numbers.
#include <xgrad/ops/loss/likelihoods.hpp>

#include <algorithm>
#include <cmath>

#include <gtest/gtest.h>

#include <xgrad/ops/reduce/reductions.hpp>

#include "../common/losses.hpp"
#include "../common/naive.hpp"
#include "../common/op.hpp"

namespace xgrad_tests::likelihoods_rows {

using naive::Arguments, naive::Numbers;
using xgrad::Reduction;

constexpr double two_pi = 6.283185307179586;

Op gaussian_nll_loss_op() {
  Op op{"likelihoods.gaussian_nll_loss"};
  const auto sample = [](const Shape& shape, const Shape& of_var, bool full, Reduction reduction) {
    return make_case(
        {{shape}, {shape}, {of_var, positive}},
        [=](const auto& x) {
          return gaussian_nll_loss(x[0], x[1], x[2], {.full = full, .reduction = reduction});
        },
        [=](const Arguments& x) {
          const std::size_t repeats = x[0].size() / std::max<std::size_t>(x[2].size(), 1);
          Numbers losses = Numbers::from_shape(shape);
          for (std::size_t i = 0; i < losses.size(); ++i) {
            const double d = x[0].data()[i] - x[1].data()[i], var = x[2].data()[i / repeats];
            losses.data()[i] = (std::log(var * (full ? two_pi : 1)) + d * d / var) / 2;
          }
          const Numbers flat = naive::reshaped(losses, {losses.size()});
          return reduction == Reduction::none  ? losses
                 : reduction == Reduction::sum ? naive::sum(0, false)({flat})
                                               : naive::mean(0, false)({flat});
        });
  };
  op.cases = {sample({2, 3}, {2, 3}, false, Reduction::none), sample({4, 3}, {4}, true, Reduction::sum),
              sample({4, 3}, {4, 1}, false, Reduction::mean), sample({7}, {}, true, Reduction::mean)};
  op.large = {sample(plane, plane, false, Reduction::mean), sample(plane, {517}, true, Reduction::mean)};
  op.errors = {
      error<ValueError>("gaussian_nll_loss: var must be at least 0, got -1",
                        [] { xgrad::gaussian_nll_loss(x(2), x(2), -x(2)); }),
      error<ValueError>("gaussian_nll_loss: eps must be positive, got 0",
                        [] { xgrad::gaussian_nll_loss(x(2), x(2), x(2), {.eps = 0}); }),
      error<ShapeError>("gaussian_nll_loss: var must broadcast to input, got input (1, 2) and var (3, 2)",
                        [] { xgrad::gaussian_nll_loss(x(1, 2), x(1, 2), x(3, 2)); }),
      error<ShapeError>("gaussian_nll_loss: shapes must broadcast, got input (2) and target (3)",
                        [] { xgrad::gaussian_nll_loss(x(2), x(3), x(2)); })};
  return op;
}

Op poisson_nll_loss_op() {
  Op op{"likelihoods.poisson_nll_loss"};
  const auto sample = [](const Shape& shape, bool log_input, bool full, Reduction reduction) {
    return make_case(
        {{shape, log_input ? Range{-2, 2} : positive}, {shape, {1.1, 6}}},
        [=](const auto& x) {
          return poisson_nll_loss(x[0], x[1], {.log_input = log_input, .full = full, .reduction = reduction});
        },
        [=](const Arguments& x) {
          Numbers losses = Numbers::from_shape(shape);
          for (std::size_t i = 0; i < losses.size(); ++i) {
            const double input = x[0].data()[i], n = x[1].data()[i];
            losses.data()[i] = log_input ? std::exp(input) - n * input : input - n * std::log(input + 1e-8);
            if (full) losses.data()[i] += n * std::log(n) - n + std::log(two_pi * n) / 2;
          }
          const Numbers flat = naive::reshaped(losses, {losses.size()});
          return reduction == Reduction::none  ? losses
                 : reduction == Reduction::sum ? naive::sum(0, false)({flat})
                                               : naive::mean(0, false)({flat});
        });
  };
  op.cases = {sample({2, 3}, true, false, Reduction::none), sample({7}, true, true, Reduction::sum),
              sample({7}, false, false, Reduction::mean), sample({7}, false, true, Reduction::mean)};
  op.large = {sample(long_vector, true, true, Reduction::mean)};
  op.errors = {error<ShapeError>("poisson_nll_loss: shapes must broadcast, got input (2) and target (3)",
                                 [] { xgrad::poisson_nll_loss(x(2), x(3)); })};
  return op;
}

const Rows rows([] { return std::vector<Op>{gaussian_nll_loss_op(), poisson_nll_loss_op()}; });

const Conformance conformance{
    {"gaussian_nll_loss",
     [](const auto& c) {
       return gaussian_nll_loss(c.x(), c.x(1), c.x(2),
                                {.full = c.flag("full"), .eps = c.number("eps"), .reduction = reduction(c)});
     }},
    {"poisson_nll_loss", [](const auto& c) {
       return poisson_nll_loss(c.x(), c.x(1),
                               {.log_input = c.flag("log_input"),
                                .full = c.flag("full"),
                                .eps = c.number("eps"),
                                .reduction = reduction(c)});
     }}};

void draw_gaussian_nll_loss(Drawing& d) {
  const Name x = d.numbers();
  const Shape shape = d.shape(x);
  d.call("gaussian_nll_loss", {x, d.numbers(shape), d.within(d.numbers(shape), positive)},
         {{"full", d.chance(0.5)}, {"eps", 1e-6}, {"reduction", draw_reduction(d)}});
}

void draw_poisson_nll_loss(Drawing& d) {
  const Name x = d.numbers();
  const bool log_input = d.chance(0.5);
  const Shape shape = d.shape(x);
  d.call(
      "poisson_nll_loss", {d.within(x, log_input ? Range{-2, 2} : positive), d.constant(shape, {1.1, 5})},
      {{"log_input", log_input}, {"full", d.chance(0.5)}, {"eps", 1e-8}, {"reduction", draw_reduction(d)}});
}

const Draws draws{{"gaussian_nll_loss", draw_gaussian_nll_loss}, {"poisson_nll_loss", draw_poisson_nll_loss}};

TEST(LikelihoodsTest, TheLeastVarianceIsEpsAndTheGradientIsThere) {
  const Variable<double> input(Array<double>{1, 3}), target(Array<double>{0, 0}),
      var(Array<double>{0, 2}, true);
  const Variable<double> loss =
      gaussian_nll_loss(input, target, var, {.eps = 0.5, .reduction = Reduction::none});
  EXPECT_DOUBLE_EQ(loss.value()(0), (std::log(0.5) + 2) / 2);
  EXPECT_EQ(grad(sum(loss), {var})[0].value(), (Array<double>{(2.0 - 4.0) / 2, (0.5 - 9.0 / 4) / 2}));
}

TEST(LikelihoodsTest, CountsUpToOneHaveNoStirlingTermAndNoNan) {
  const Variable<double> input(Array<double>{0, 0, 0}), target(Array<double>{0, 1, 2}, true);
  const Variable<double> loss = poisson_nll_loss(input, target, {.full = true, .reduction = Reduction::none});
  const double stirling = 2 * std::log(2.0) - 2 + std::log(2 * two_pi) / 2;
  EXPECT_EQ(loss.value()(0), 1);
  EXPECT_EQ(loss.value()(1), 1);
  EXPECT_DOUBLE_EQ(loss.value()(2), 1 + stirling);
  EXPECT_EQ(grad(sum(loss), {target})[0].value(), (Array<double>{0, 0, std::log(2.0) + 0.25}));
}

TEST(LikelihoodsTest, ASquareOutsideOfTheRangeMayHaveALikelihood) {
  const Variable<float> input(Array<float>{1e20F}, true), target(Array<float>{0}), var(Array<float>{1e38F});
  const Variable<float> loss = gaussian_nll_loss(input, target, var);
  EXPECT_NEAR(loss.item(), (std::log(1e38) + 100) / 2, 1e-4);
  EXPECT_FLOAT_EQ(grad(loss, {input})[0].value()(0), 1e-18F);
}

}  // namespace xgrad_tests::likelihoods_rows
