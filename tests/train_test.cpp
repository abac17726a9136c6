#include <algorithm>
#include <cmath>

#include <gtest/gtest.h>
#include <xtensor/xbuilder.hpp>

#include <xgrad/ops/reductions.hpp>
#include <xgrad/train/adam.hpp>
#include <xgrad/train/clip_grad.hpp>
#include <xgrad/train/schedule.hpp>
#include <xgrad/train/sgd.hpp>

#include "expect_error.hpp"

namespace {

using xgrad::Array, xgrad::Variable;

/// A parameter whose gradient is `slope`, whatever its value.
template <class T>
Variable<T> sloped(T value, T slope) {
  const Variable<T> parameter(Array<T>{value}, true);
  sum(parameter * slope).backward();
  return parameter;
}

template <class T>
T element(const Variable<T>& parameter) {
  return parameter.value()(0);
}

// One parameter under gradients that change from step to step, beside PyTorch's formulas written out.

const std::vector<double> slopes{0.5, -2, 0.25, 3};

template <class Optimizer, class Expected>
void compare(const Variable<double>& p, Optimizer& optimizer, Expected&& expected_step) {
  double expected = element(p);
  for (std::size_t t = 0; t < slopes.size(); ++t) {
    optimizer.zero_grad();
    sum(p * slopes[t]).backward();
    optimizer.step();
    expected = expected_step(expected, slopes[t], static_cast<double>(t + 1));
    EXPECT_NEAR(element(p), expected, 1e-15) << "step " << t;
  }
}

TEST(SGDTest, TakesPyTorchsSteps) {
  for (const xgrad::SGDOptions& o :
       {xgrad::SGDOptions{.lr = 0.1}, xgrad::SGDOptions{.lr = 0.1, .weight_decay = 0.2},
        xgrad::SGDOptions{.lr = 0.1, .momentum = 0.9},
        xgrad::SGDOptions{.lr = 0.1, .momentum = 0.9, .dampening = 0.3, .weight_decay = 0.2},
        xgrad::SGDOptions{.lr = 0.1, .momentum = 0.9, .weight_decay = 0.2, .nesterov = true}}) {
    const Variable<double> p(Array<double>{1.5}, true);
    xgrad::SGD<double> optimizer({p}, o);
    double velocity = 0;
    compare(p, optimizer, [&](double x, double g, double t) {
      g += o.weight_decay * x;
      velocity = t == 1 ? g : o.momentum * velocity + (1 - o.dampening) * g;
      return x - o.lr * (o.momentum == 0 ? g : o.nesterov ? g + o.momentum * velocity : velocity);
    });
  }
}

template <class Options>
auto adam_formula(const Options& o, bool decoupled) {
  return [o, decoupled, m = 0.0, v = 0.0](double x, double g, double t) mutable {
    if (decoupled) {
      x *= 1 - o.lr * o.weight_decay;
    } else {
      g += o.weight_decay * x;
    }
    m = o.betas.first * m + (1 - o.betas.first) * g;
    v = o.betas.second * v + (1 - o.betas.second) * g * g;
    const double m_hat = m / (1 - std::pow(o.betas.first, t)), v_hat = v / (1 - std::pow(o.betas.second, t));
    return x - o.lr * m_hat / (std::sqrt(v_hat) + o.eps);
  };
}

TEST(AdamTest, TakesPyTorchsSteps) {
  for (const xgrad::AdamOptions& o :
       {xgrad::AdamOptions{}, xgrad::AdamOptions{.lr = 0.1, .weight_decay = 0.2},
        xgrad::AdamOptions{.lr = 0.1, .betas = {0.5, 0.8}, .eps = 1e-3}}) {
    const Variable<double> p(Array<double>{1.5}, true);
    xgrad::Adam<double> optimizer({p}, o);
    compare(p, optimizer, adam_formula(o, false));
  }
}

TEST(AdamWTest, TakesPyTorchsSteps) {
  for (const xgrad::AdamWOptions& o :
       {xgrad::AdamWOptions{}, xgrad::AdamWOptions{.lr = 0.1, .weight_decay = 0.2}}) {
    const Variable<double> p(Array<double>{1.5}, true);
    xgrad::AdamW<double> optimizer({p}, o);
    compare(p, optimizer, adam_formula(o, true));
  }
}

TEST(AdamTest, TheFirstStepIsTheLearningRate) {
  const Variable<float> p = sloped(1.0F, 123.0F);
  xgrad::Adam<float>({p}, {.lr = 0.25}).step();
  EXPECT_FLOAT_EQ(element(p), 0.75F);
}

TEST(OptimizerTest, SkipsAParameterWithoutGradient) {
  const Variable<double> with = sloped(1.0, 2.0), without(Array<double>{1.5}, true);
  xgrad::AdamW<double> optimizer({without, with}, {.lr = 0.1});
  optimizer.step();
  EXPECT_EQ(element(without), 1.5);
  EXPECT_NE(element(with), 1.0);
  // and its first step is still to come
  compare(without, optimizer, adam_formula(xgrad::AdamWOptions{.lr = 0.1}, true));
}

TEST(OptimizerTest, HasALearningRateThatCanBeSet) {
  const Variable<double> p = sloped(1.0, 2.0);
  xgrad::SGD<double> optimizer({p}, {.lr = 0.5});
  EXPECT_EQ(optimizer.lr(), 0.5);
  optimizer.set_lr(0.25);
  optimizer.step();
  EXPECT_EQ(element(p), 0.5);
  EXPECT_EQ(xgrad_tests::message_of([&] { optimizer.set_lr(-1); }),
            "SGD: lr must be finite and at least 0, got -1");
}

TEST(OptimizerTest, RefusesBadOptions) {
  const Variable<float> p(Array<float>{1}, true);
  const auto sgd = [&](xgrad::SGDOptions o) {
    return xgrad_tests::message_of([&] { xgrad::SGD<float>({p}, o); });
  };
  const auto adam = [&](xgrad::AdamOptions o) {
    return xgrad_tests::message_of([&] { xgrad::Adam<float>({p}, o); });
  };
  EXPECT_EQ(sgd({.lr = std::nan("")}), "SGD: lr must be finite and at least 0, got nan");
  EXPECT_EQ(sgd({.lr = HUGE_VAL}), "SGD: lr must be finite and at least 0, got inf");
  EXPECT_EQ(sgd({.momentum = -0.5}), "SGD: momentum must be finite and at least 0, got -0.5");
  EXPECT_EQ(sgd({.dampening = HUGE_VAL}), "SGD: dampening must be finite, got inf");
  EXPECT_EQ(sgd({.weight_decay = -1}), "SGD: weight_decay must be finite and at least 0, got -1");
  EXPECT_EQ(sgd({.nesterov = true}), "SGD: nesterov needs a momentum and no dampening, got 0 and 0");
  EXPECT_EQ(adam({.lr = -1}), "Adam: lr must be finite and at least 0, got -1");
  EXPECT_EQ(adam({.betas = {0.9, 1}}), "Adam: betas must be in [0, 1), got 1");
  EXPECT_EQ(adam({.eps = -1}), "Adam: eps must be finite and at least 0, got -1");
  EXPECT_EQ(xgrad_tests::message_of([&] { xgrad::AdamW<float>({p}, {.weight_decay = -1}); }),
            "AdamW: weight_decay must be finite and at least 0, got -1");
  EXPECT_EQ(xgrad_tests::message_of([] { xgrad::Adam<float>({}); }),
            "Adam: there must be parameters, got none");
  EXPECT_EQ(xgrad_tests::message_of([&] {
              xgrad::Adam<float>({p, p * 2.0F});
            }),
            "Adam: every parameter must be a leaf that requires a gradient, parameter 1 is not");
  EXPECT_EQ(xgrad_tests::message_of([&] { xgrad::Adam<float>({Variable<float>(1.0F)}); }),
            "Adam: every parameter must be a leaf that requires a gradient, parameter 0 is not");
}

TEST(OptimizerTest, ABackwardThroughChangedParametersIsRefused) {
  const Variable<double> p = sloped(1.0, 2.0);
  const Variable<double> loss = sum(p * p);
  xgrad::SGD<double>({p}).step();
  EXPECT_NE(xgrad_tests::message_of([&] { loss.backward(); }), "no error");
}

TEST(ClipGradTest, ScalesAllGradientsTogether) {
  const std::vector<Variable<double>> parameters{sloped(0.0, 3.0), Variable<double>(1.0, true),
                                                 sloped(0.0, -4.0)};
  EXPECT_DOUBLE_EQ(clip_grad_norm(parameters, 10.0), 5);
  EXPECT_EQ(element(parameters[0].grad()), 3);
  EXPECT_DOUBLE_EQ(clip_grad_norm(parameters, 1.0), 5);
  EXPECT_DOUBLE_EQ(element(parameters[0].grad()), 3 / (5 + 1e-6));
  EXPECT_DOUBLE_EQ(element(parameters[2].grad()), -4 / (5 + 1e-6));
  EXPECT_EQ(xgrad_tests::message_of([&] { clip_grad_norm(parameters, -1.0); }),
            "clip_grad_norm: max_norm must be at least 0, got -1");
}

TEST(ClipGradTest, OfNoGradientsIsZero) {
  EXPECT_EQ(xgrad::clip_grad_norm<float>({Variable<float>(1.0F, true)}, 1), 0);
}

TEST(ScheduleTest, WarmsUpAndFallsAlongACosine) {
  EXPECT_EQ(xgrad::cosine_schedule(0, 10), 1);
  EXPECT_NEAR(xgrad::cosine_schedule(5, 10), 0.5, 1e-15);
  EXPECT_EQ(xgrad::cosine_schedule(10, 10), 0);
  EXPECT_EQ(xgrad::cosine_schedule(0, 12, 4), 0.25);
  EXPECT_EQ(xgrad::cosine_schedule(3, 12, 4), 1);
  EXPECT_EQ(xgrad::cosine_schedule(4, 12, 4), 1);
  EXPECT_NEAR(xgrad::cosine_schedule(8, 12, 4), 0.5, 1e-15);
  EXPECT_EQ(xgrad_tests::message_of([] { xgrad::cosine_schedule(0, 3, 5); }),
            "cosine_schedule: warmup_steps must be at most total_steps, got 5 and 3");
}

}  // namespace
