#include <cmath>
#include <optional>
#include <utility>

#include <gtest/gtest.h>

#include <xgrad/train/lr_scheduler.hpp>
#include <xgrad/train/optimizers/adam.hpp>
#include <xgrad/train/optimizers/sgd.hpp>

#include "expect_error.hpp"
#include "optim_cases.hpp"

namespace lr_scheduler_test {

using nlohmann::json;
using xgrad::LRScheduler, xgrad::Variable;
using xgrad_tests::message_of;

xgrad::SGD<double> optimizer_of(const std::vector<double>& rates) {
  std::vector<xgrad::SGD<double>::Group> groups;
  for (const double lr : rates) {
    groups.push_back({.parameters = {Variable<double>(1.0, true)}, .options = {.lr = lr}});
  }
  return xgrad::SGD<double>(groups);
}

LRScheduler<double> scheduler_of(const json& test, xgrad::Optimizer<double>& optimizer) {
  const auto name = test.at("scheduler").get<std::string>();
  const json& a = test.at("arguments");
  if (name == "ConstantLR") return xgrad::ConstantLR<double>(optimizer, a.at("factor"), a.at("total_iters"));
  if (name == "LinearLR") {
    return xgrad::LinearLR<double>(optimizer, {.start_factor = a.at("start_factor"),
                                               .end_factor = a.at("end_factor"),
                                               .total_iters = a.at("total_iters")});
  }
  if (name == "CosineAnnealingLR") {
    return xgrad::CosineAnnealingLR<double>(optimizer, a.at("T_max"), a.at("eta_min"));
  }
  if (name == "StepLR") return xgrad::StepLR<double>(optimizer, a.at("step_size"), a.at("gamma"));
  if (name == "InverseSquareRootLR") {
    return xgrad::InverseSquareRootLR<double>(optimizer, a.at("d_model"), a.at("warmup_steps"));
  }
  if (name == "LambdaLR") {
    return xgrad::LambdaLR<double>(
        optimizer, {[](std::size_t epoch) { return std::pow(0.95, static_cast<double>(epoch)); },
                    [](std::size_t epoch) { return 1 / (1 + static_cast<double>(epoch)); }});
  }
  if (name == "MultiStepLR") return xgrad::MultiStepLR<double>(optimizer, a.at("milestones"), a.at("gamma"));
  if (name == "ExponentialLR") return xgrad::ExponentialLR<double>(optimizer, a.at("gamma"));
  if (name == "PolynomialLR")
    return xgrad::PolynomialLR<double>(optimizer, a.at("total_iters"), a.at("power"));
  if (name == "CosineAnnealingWarmRestarts") {
    return xgrad::CosineAnnealingWarmRestarts<double>(optimizer, a.at("T_0"),
                                                      {.T_mult = a.at("T_mult"), .eta_min = a.at("eta_min")});
  }
  if (name == "OneCycleLR") {
    const bool linear = a.at("anneal_strategy") == "linear";
    return xgrad::OneCycleLR<double>(
        optimizer, a.at("max_lr").get<std::vector<double>>(), a.at("total_steps"),
        {.pct_start = a.at("pct_start"),
         .anneal_strategy = linear ? xgrad::AnnealStrategy::linear : xgrad::AnnealStrategy::cos,
         .div_factor = a.at("div_factor"),
         .final_div_factor = a.at("final_div_factor"),
         .three_phase = a.at("three_phase")});
  }
  EXPECT_EQ(name, "SequentialLR");
  return xgrad::SequentialLR<double>(
      optimizer,
      {xgrad::LinearLR<double>(optimizer, {.start_factor = 0.2}),
       xgrad::CosineAnnealingLR<double>(optimizer, 12, 0.01), xgrad::StepLR<double>(optimizer, 2, 0.5)},
      {5, 17});
}

class LRSchedulerCaseTest : public testing::TestWithParam<std::size_t> {};

TEST_P(LRSchedulerCaseTest, SetsPyTorchsRates) {
  const json& test = xgrad_tests::optim_cases().at("schedulers").at(GetParam());
  SCOPED_TRACE(test.at("scheduler").get<std::string>() + " " + test.at("arguments").dump());
  xgrad::SGD<double> optimizer = optimizer_of(test.at("base"));
  LRScheduler<double> scheduler = scheduler_of(test, optimizer);
  EXPECT_EQ(scheduler.base_lrs(), test.at("base").get<std::vector<double>>());
  const json& rates = test.at("rates");
  for (std::size_t epoch = 0; epoch < rates.size(); ++epoch) {
    if (epoch > 0) scheduler.step();
    EXPECT_EQ(scheduler.last_epoch(), epoch);
    for (std::size_t group = 0; group < rates[epoch].size(); ++group) {
      const double want = rates[epoch][group];
      EXPECT_NEAR(optimizer.lr(group), want, 1e-12) << "epoch " << epoch << ", group " << group;
      EXPECT_EQ(scheduler.get_last_lr().at(group), optimizer.lr(group));
    }
  }
}

INSTANTIATE_TEST_SUITE_P(PyTorch, LRSchedulerCaseTest,
                         testing::Range(std::size_t{0}, xgrad_tests::scheduler_cases));

TEST(LRSchedulerTest, HasPyTorchsDefaults) {
  xgrad::SGD<double> optimizer = optimizer_of({3});
  xgrad::ConstantLR<double> constant(optimizer);
  EXPECT_DOUBLE_EQ(optimizer.lr(), 1);
  for (int i = 0; i < 5; ++i) constant.step();
  EXPECT_EQ(optimizer.lr(), 3);
  xgrad::LinearLR<double> linear(optimizer);
  EXPECT_DOUBLE_EQ(optimizer.lr(), 1);
  for (int i = 0; i < 5; ++i) linear.step();
  EXPECT_EQ(optimizer.lr(), 3);
  xgrad::StepLR<double> step(optimizer, 1);
  step.step();
  EXPECT_DOUBLE_EQ(optimizer.lr(), 0.3);
}

TEST(LRSchedulerTest, EveryFurtherSchedulerStartsFromTheSameBase) {
  xgrad::SGD<double> optimizer = optimizer_of({4});
  const xgrad::ConstantLR<double> first(optimizer, 0.5);
  EXPECT_EQ(optimizer.lr(), 2);
  const xgrad::ConstantLR<double> second(optimizer, 0.25);
  EXPECT_EQ(optimizer.lr(), 1);
  EXPECT_EQ(second.base_lrs(), std::vector<double>{4});
}

TEST(LRSchedulerTest, GoesOnFromASavedState) {
  const auto make = [](xgrad::Optimizer<double>& optimizer) {
    return xgrad::SequentialLR<double>(optimizer,
                                       {xgrad::LinearLR<double>(optimizer, {.total_iters = 4}),
                                        xgrad::CosineAnnealingLR<double>(optimizer, 9)},
                                       {4});
  };
  xgrad::SGD<double> optimizer = optimizer_of({0.5, 0.25});
  auto scheduler = make(optimizer);
  for (int i = 0; i < 6; ++i) scheduler.step();
  const xgrad::TrainingState state = scheduler.state_dict();
  EXPECT_EQ(state, (xgrad::TrainingState{.numbers = {{"last_epoch", 6}}}));

  xgrad::SGD<double> resumed_optimizer = optimizer_of({1, 1});
  auto resumed = make(resumed_optimizer);
  resumed_optimizer.load_state_dict(optimizer.state_dict());
  resumed.load_state_dict(state);
  for (int i = 0; i < 5; ++i) {
    EXPECT_EQ(resumed_optimizer.lr(0), optimizer.lr(0));
    EXPECT_EQ(resumed_optimizer.lr(1), optimizer.lr(1));
    scheduler.step();
    resumed.step();
  }
  EXPECT_EQ(resumed.state_dict(), scheduler.state_dict());
  const xgrad::ConstantLR<double> next(resumed_optimizer, 1);
  EXPECT_EQ(next.base_lrs(), (std::vector<double>{0.5, 0.25}));
}

TEST(LRSchedulerTest, ARateSetByHandSurvivesSavingAndLoading) {
  xgrad::SGD<double> optimizer = optimizer_of({0.5}), resumed_optimizer = optimizer_of({0.5});
  xgrad::StepLR<double> scheduler(optimizer, 2), resumed(resumed_optimizer, 2);
  scheduler.step();
  optimizer.set_lr(0.125);
  resumed_optimizer.load_state_dict(optimizer.state_dict());
  resumed.load_state_dict(scheduler.state_dict());
  EXPECT_EQ(resumed_optimizer.lr(), 0.125);
}

TEST(LRSchedulerTest, AStateSavedWithoutASchedulerHasItsRatesForBaseRates) {
  const xgrad::SGD<double> plain = optimizer_of({0.25});
  xgrad::SGD<double> optimizer = optimizer_of({0.5});
  xgrad::ConstantLR<double> scheduler(optimizer, 1);
  optimizer.load_state_dict(plain.state_dict());
  EXPECT_EQ(scheduler.base_lrs(), std::vector<double>{0.25});
}

TEST(LRSchedulerTest, RefusesAWrongState) {
  xgrad::SGD<double> optimizer = optimizer_of({0.5});
  xgrad::StepLR<double> scheduler(optimizer, 2);
  EXPECT_EQ(message_of([&] {
              scheduler.load_state_dict({.numbers = {{"last_epoch", 1.5}, {"gamma", 1}}});
            }),
            "load_state_dict: 'last_epoch' must be a whole number, got 1.5; 'gamma' is unexpected");
  EXPECT_EQ(message_of([&] {
              scheduler.load_state_dict({.numbers = {{"epoch", 3}}});
            }),
            "load_state_dict: 'last_epoch' is missing; 'epoch' is unexpected");
  EXPECT_EQ(scheduler.last_epoch(), 0u);
  EXPECT_EQ(optimizer.lr(), 0.5);
}

TEST(LRSchedulerTest, RefusesARateThatCannotBeAndStaysInItsEpoch) {
  xgrad::SGD<double> optimizer = optimizer_of({1, 1});
  xgrad::LambdaLR<double> scheduler(optimizer,
                                    {[](std::size_t epoch) { return 1 + static_cast<double>(epoch); },
                                     [](std::size_t epoch) { return 1 - 2 * static_cast<double>(epoch); }});
  EXPECT_EQ(message_of([&] { scheduler.step(); }), "LRScheduler: lr must be finite and at least 0, got -1");
  EXPECT_EQ(scheduler.last_epoch(), 0u);
  EXPECT_EQ(optimizer.lr(0), 1);
}

TEST(LRSchedulerTest, LinearWarmupRisesFromZeroAndFallsToZero) {
  xgrad::SGD<double> optimizer = optimizer_of({2});
  xgrad::LinearWarmupLR<double> scheduler(optimizer, 2, 6);
  for (const double lr : {0.0, 1.0, 2.0, 1.5, 1.0, 0.5, 0.0, 0.0}) {
    EXPECT_EQ(optimizer.lr(), lr) << scheduler.last_epoch();
    scheduler.step();
  }
  const xgrad::LinearWarmupLR<double> at_once(optimizer, 0, 4);
  EXPECT_EQ(optimizer.lr(), 2);
}

TEST(LRSchedulerTest, OneCycleEndsAfterItsSteps) {
  xgrad::SGD<double> optimizer = optimizer_of({1});
  xgrad::OneCycleLR<double> scheduler(optimizer, 0.5, 3,
                                      {.anneal_strategy = xgrad::AnnealStrategy::linear, .div_factor = 10});
  for (int i = 0; i < 3; ++i) scheduler.step();
  EXPECT_EQ(optimizer.lr(), 0);  // PyTorch's is negative
  EXPECT_EQ(message_of<xgrad::ValueError>([&] { scheduler.step(); }), "OneCycleLR: there are 3 steps, got 4");
  EXPECT_EQ(scheduler.last_epoch(), 3u);
  const xgrad::OneCycleLR<double> at_once(optimizer, 0.5, 2, {.pct_start = 0.5});
  EXPECT_EQ(optimizer.lr(), 0.5) << "of a rise without a step, the end";
}

TEST(LRSchedulerTest, RestartsOfPeriodsThatGrowWithoutLimit) {
  xgrad::SGD<double> optimizer = optimizer_of({1});
  xgrad::CosineAnnealingWarmRestarts<double> scheduler(optimizer, 2, {.T_mult = std::size_t{1} << 62});
  for (int i = 0; i < 2; ++i) scheduler.step();
  EXPECT_EQ(optimizer.lr(), 1);
  for (int i = 0; i < 9; ++i) scheduler.step();
  EXPECT_EQ(optimizer.lr(), 1);
}

TEST(LRSchedulerTest, RefusesBadArguments) {
  xgrad::SGD<double> o = optimizer_of({1, 1}), other = optimizer_of({1});
  const auto refusal = [](auto&& make) { return message_of<xgrad::ValueError>(make); };
  const auto one = [](std::size_t) { return 1.0; };
  using Lambda = xgrad::LambdaLR<double>::Lambda;
  EXPECT_EQ(refusal([&] { xgrad::LambdaLR<double>(o, std::vector<Lambda>{one}); }),
            "LambdaLR: there must be a function for each of 2 groups, got 1");
  EXPECT_EQ(refusal([&] { xgrad::ConstantLR<double>(o, 1.5); }),
            "ConstantLR: factor must be in [0, 1], got 1.5");
  EXPECT_EQ(refusal([&] { xgrad::LinearLR<double>(o, {.start_factor = -1}); }),
            "LinearLR: start_factor must be in [0, 1], got -1");
  EXPECT_EQ(refusal([&] { xgrad::LinearLR<double>(o, {.end_factor = std::nan("")}); }),
            "LinearLR: end_factor must be in [0, 1], got nan");
  EXPECT_EQ(refusal([&] { xgrad::LinearLR<double>(o, {.total_iters = 0}); }),
            "LinearLR: total_iters must be at least 1, got 0");
  EXPECT_EQ(refusal([&] { xgrad::CosineAnnealingLR<double>(o, 0); }),
            "CosineAnnealingLR: T_max must be at least 1, got 0");
  EXPECT_EQ(refusal([&] { xgrad::CosineAnnealingLR<double>(o, 3, -1); }),
            "CosineAnnealingLR: eta_min must be finite and at least 0, got -1");
  EXPECT_EQ(refusal([&] { xgrad::StepLR<double>(o, 0); }), "StepLR: step_size must be at least 1, got 0");
  EXPECT_EQ(refusal([&] { xgrad::StepLR<double>(o, 1, -1); }),
            "StepLR: gamma must be finite and at least 0, got -1");
  EXPECT_EQ(refusal([&] { xgrad::LinearWarmupLR<double>(o, 4, 4); }),
            "LinearWarmupLR: total_steps must be above warmup_steps 4, got 4");
  EXPECT_EQ(refusal([&] { xgrad::InverseSquareRootLR<double>(o, 0, 1); }),
            "InverseSquareRootLR: d_model must be at least 1, got 0");
  EXPECT_EQ(refusal([&] { xgrad::InverseSquareRootLR<double>(o, 1, 0); }),
            "InverseSquareRootLR: warmup_steps must be at least 1, got 0");
  EXPECT_EQ(refusal([&] { xgrad::MultiStepLR<double>(o, {1}, -1); }),
            "MultiStepLR: gamma must be finite and at least 0, got -1");
  EXPECT_EQ(refusal([&] { xgrad::ExponentialLR<double>(o, -1); }),
            "ExponentialLR: gamma must be finite and at least 0, got -1");
  EXPECT_EQ(refusal([&] { xgrad::PolynomialLR<double>(o, 0); }),
            "PolynomialLR: total_iters must be at least 1, got 0");
  EXPECT_EQ(refusal([&] { xgrad::PolynomialLR<double>(o, 1, -1); }),
            "PolynomialLR: power must be finite and at least 0, got -1");
  EXPECT_EQ(refusal([&] { xgrad::CosineAnnealingWarmRestarts<double>(o, 0); }),
            "CosineAnnealingWarmRestarts: T_0 must be at least 1, got 0");
  EXPECT_EQ(refusal([&] { xgrad::CosineAnnealingWarmRestarts<double>(o, 1, {.T_mult = 0}); }),
            "CosineAnnealingWarmRestarts: T_mult must be at least 1, got 0");
  EXPECT_EQ(refusal([&] { xgrad::CosineAnnealingWarmRestarts<double>(o, 1, {.eta_min = -1}); }),
            "CosineAnnealingWarmRestarts: eta_min must be finite and at least 0, got -1");
  EXPECT_EQ(refusal([&] { xgrad::OneCycleLR<double>(o, std::vector<double>{1}, 5); }),
            "OneCycleLR: there must be a max_lr for each of 2 groups, got 1");
  EXPECT_EQ(refusal([&] { xgrad::OneCycleLR<double>(o, -1, 5); }),
            "OneCycleLR: max_lr must be finite and at least 0, got -1");
  EXPECT_EQ(refusal([&] { xgrad::OneCycleLR<double>(o, 1, 0); }),
            "OneCycleLR: total_steps must be at least 1, got 0");
  EXPECT_EQ(refusal([&] { xgrad::OneCycleLR<double>(o, 1, 5, {.pct_start = 1.5}); }),
            "OneCycleLR: pct_start must be in [0, 1], got 1.5");
  EXPECT_EQ(refusal([&] { xgrad::OneCycleLR<double>(o, 1, 5, {.div_factor = 0}); }),
            "OneCycleLR: div_factor must be finite and above 0, got 0");
  EXPECT_EQ(refusal([&] { xgrad::OneCycleLR<double>(o, 1, 5, {.final_div_factor = HUGE_VAL}); }),
            "OneCycleLR: final_div_factor must be finite and above 0, got inf");
  const xgrad::StepLR<double> step(o, 1), foreign(other, 1);
  EXPECT_EQ(refusal([&] {
              xgrad::SequentialLR<double>(o, {step, step}, {});
            }),
            "SequentialLR: there must be one scheduler more than milestones, got 2 and 0");
  EXPECT_EQ(refusal([&] {
              xgrad::SequentialLR<double>(o, {step, step}, {0});
            }),
            "SequentialLR: milestones must rise from 1, got 0 after 0");
  EXPECT_EQ(refusal([&] {
              xgrad::SequentialLR<double>(o, {step, step, step}, {4, 3});
            }),
            "SequentialLR: milestones must rise from 1, got 3 after 4");
  EXPECT_EQ(refusal([&] {
              xgrad::SequentialLR<double>(o, {step, foreign}, {4});
            }),
            "SequentialLR: every scheduler must have the given optimizer, scheduler 1 has another");
}

TEST(LRSchedulerTest, NoticesThatItsOptimizerMovedOrWasDestroyed) {
  const std::string error =
      "LRScheduler: the optimizer was moved, assigned to or destroyed; it must stay where it is";
  std::optional<xgrad::SGD<double>> sgd = optimizer_of({0.5});
  xgrad::StepLR<double> scheduler(*sgd, 2);
  scheduler.step();
  const xgrad::SGD<double> moved = std::move(*sgd);
  EXPECT_EQ(message_of<xgrad::ValueError>([&] { scheduler.step(); }), error);
  xgrad::SGD<double> copied_from = optimizer_of({0.5});
  xgrad::StepLR<double> other(copied_from, 2);
  const xgrad::SGD<double> copy = copied_from;
  EXPECT_EQ(message_of([&] { other.step(); }), "no exception") << "a copy leaves the optimizer where it is";
  copied_from = optimizer_of({0.25});
  EXPECT_EQ(message_of<xgrad::ValueError>([&] { other.step(); }), error) << "its base rates are gone";
  xgrad::StepLR<double> of_the_new(copied_from, 1);
  EXPECT_EQ(message_of([&] { of_the_new.step(); }), "no exception");
  sgd.emplace(optimizer_of({0.5}));
  xgrad::StepLR<double> last(*sgd, 2);
  sgd.reset();
  EXPECT_EQ(message_of<xgrad::ValueError>([&] { last.step(); }), error);
  EXPECT_EQ(message_of<xgrad::ValueError>([&] { last.base_lrs(); }), error);
}

TEST(LrSchedulerTest, AStepBeforeTheOptimizersIsToldOnce) {
  const Variable<double> x(1.0, true);
  xgrad::SGD<double> optimizer({x}, {.lr = 0.1});
  const auto said = [&](bool trains) {
    xgrad::StepLR<double> scheduler(optimizer, 1);
    testing::internal::CaptureStderr();
    for (int i = 0; i < 2; ++i) {
      x.set_grad(1.0);
      if (trains) optimizer.step();
      scheduler.step();
    }
    return testing::internal::GetCapturedStderr();
  };
  EXPECT_EQ(
      said(false),
      "warning: LRScheduler: step() before the first step of the optimizer skips the first learning rate\n");
  EXPECT_EQ(said(true), "");
}

}  // namespace lr_scheduler_test
