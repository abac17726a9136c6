#include <cmath>

#include <gtest/gtest.h>

#include <xgrad/base/random.hpp>
#include <xgrad/models/layers/linear.hpp>
#include <xgrad/ops/index/indexing.hpp>
#include <xgrad/ops/loss/losses.hpp>
#include <xgrad/ops/product/matmul.hpp>
#include <xgrad/ops/reduce/reductions.hpp>
#include <xgrad/ops/shape/shapes.hpp>
#include <xgrad/train/optimizers/adagrad.hpp>
#include <xgrad/train/optimizers/adam.hpp>
#include <xgrad/train/optimizers/muon.hpp>
#include <xgrad/train/optimizers/rmsprop.hpp>
#include <xgrad/train/optimizers/sgd.hpp>

#include "expect_error.hpp"
#include "optim_cases.hpp"

namespace optimizer_test {

using nlohmann::json;
using xgrad::Array, xgrad::Shape, xgrad::TrainingState, xgrad::Variable;
using xgrad_tests::array_of, xgrad_tests::expect_near, xgrad_tests::message_of;

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

void read_options(const json& fields, xgrad::SGDOptions& options) {
  options = {.lr = fields.value("lr", options.lr),
             .momentum = fields.value("momentum", options.momentum),
             .dampening = fields.value("dampening", options.dampening),
             .weight_decay = fields.value("weight_decay", options.weight_decay),
             .nesterov = fields.value("nesterov", options.nesterov),
             .maximize = fields.value("maximize", options.maximize)};
}

template <class AdamOptions>
void read_options(const json& fields, AdamOptions& options) {
  options.lr = fields.value("lr", options.lr);
  options.betas = fields.value("betas", options.betas);
  options.eps = fields.value("eps", options.eps);
  options.weight_decay = fields.value("weight_decay", options.weight_decay);
  options.maximize = fields.value("maximize", options.maximize);
  if constexpr (requires { options.amsgrad; }) options.amsgrad = fields.value("amsgrad", options.amsgrad);
  if constexpr (requires { options.momentum_decay; })
    options.momentum_decay = fields.value("momentum_decay", options.momentum_decay);
  if constexpr (requires { options.decoupled_weight_decay; })
    options.decoupled_weight_decay = fields.value("decoupled_weight_decay", options.decoupled_weight_decay);
}

void read_options(const json& fields, xgrad::RMSpropOptions& options) {
  options = {.lr = fields.value("lr", options.lr),
             .alpha = fields.value("alpha", options.alpha),
             .eps = fields.value("eps", options.eps),
             .weight_decay = fields.value("weight_decay", options.weight_decay),
             .momentum = fields.value("momentum", options.momentum),
             .centered = fields.value("centered", options.centered),
             .maximize = fields.value("maximize", options.maximize)};
}

void read_options(const json& fields, xgrad::AdagradOptions& options) {
  options = {.lr = fields.value("lr", options.lr),
             .lr_decay = fields.value("lr_decay", options.lr_decay),
             .weight_decay = fields.value("weight_decay", options.weight_decay),
             .initial_accumulator_value =
                 fields.value("initial_accumulator_value", options.initial_accumulator_value),
             .eps = fields.value("eps", options.eps),
             .maximize = fields.value("maximize", options.maximize)};
}

void read_options(const json& fields, xgrad::MuonOptions& options) {
  options = {.lr = fields.value("lr", options.lr),
             .weight_decay = fields.value("weight_decay", options.weight_decay),
             .momentum = fields.value("momentum", options.momentum),
             .nesterov = fields.value("nesterov", options.nesterov),
             .ns_coefficients = fields.value("ns_coefficients", options.ns_coefficients),
             .eps = fields.value("eps", options.eps),
             .ns_steps = fields.value("ns_steps", options.ns_steps),
             .adjust_lr_fn = fields.contains("adjust_lr_fn") ? xgrad::MuonAdjustment::match_rms_adamw
                                                             : xgrad::MuonAdjustment::original};
}

template <class T>
void expect_state(const TrainingState& state, const json& want, double tolerance) {
  const xgrad::StateDict<T>& arrays = state.arrays<T>();
  EXPECT_EQ(state.floats.size() + state.doubles.size() + state.numbers.size(), want.size());
  for (const auto& [name, value] : want.items()) {
    if (value.is_array() || name.find("exp_avg") != std::string::npos) {
      ASSERT_EQ(arrays.count(name), 1u) << name;
      expect_near(arrays.at(name), value, tolerance, name);
    } else {
      ASSERT_EQ(state.numbers.count(name), 1u) << name;
      EXPECT_EQ(state.numbers.at(name), xgrad_tests::number_of(value)) << name;
    }
  }
}

/// Takes the steps of a case, from its start to its end.
template <class Optimizer, class T>
void run_case(const json& test, double tolerance) {
  std::vector<Variable<T>> parameters;
  std::vector<typename Optimizer::Group> groups;
  for (const json& fields : test.at("groups")) {
    typename Optimizer::Group& group = groups.emplace_back();
    read_options(fields, group.options);
    for (const json& shape : test.at("shapes")) {
      const auto lengths = shape.get<std::vector<std::size_t>>();
      const json& start = test.at("start").at(parameters.size());
      parameters.emplace_back(array_of<T>(start, Shape(lengths.begin(), lengths.end())), true);
      group.parameters.push_back(parameters.back());
    }
  }
  Optimizer optimizer(groups);
  for (const json& gradients : test.at("gradients")) {
    optimizer.zero_grad();
    for (std::size_t i = 0; i < parameters.size(); ++i) {
      if (gradients[i].is_null()) continue;
      sum(parameters[i] * Variable<T>(array_of<T>(gradients[i], parameters[i].shape()))).backward();
    }
    optimizer.step();
  }
  for (std::size_t i = 0; i < parameters.size(); ++i) {
    expect_near(parameters[i].value(), test.at("end")[i], tolerance, "parameter " + std::to_string(i));
  }
  expect_state<T>(optimizer.state_dict(), test.at("state"), tolerance);
}

template <class T>
void run_case_of_type(const json& test, double tolerance) {
  const auto kind = test.at("optimizer").get<std::string>();
  if (kind == "SGD") return run_case<xgrad::SGD<T>, T>(test, tolerance);
  if (kind == "Adam") return run_case<xgrad::Adam<T>, T>(test, tolerance);
  if (kind == "AdamW") return run_case<xgrad::AdamW<T>, T>(test, tolerance);
  if (kind == "NAdam") return run_case<xgrad::NAdam<T>, T>(test, tolerance);
  if (kind == "RAdam") return run_case<xgrad::RAdam<T>, T>(test, tolerance);
  if (kind == "RMSprop") return run_case<xgrad::RMSprop<T>, T>(test, tolerance);
  if (kind == "Adagrad") return run_case<xgrad::Adagrad<T>, T>(test, tolerance);
  EXPECT_EQ(kind, "Muon");
  run_case<xgrad::Muon<T>, T>(test, tolerance);
}

class OptimizerCaseTest : public testing::TestWithParam<std::size_t> {};

TEST_P(OptimizerCaseTest, TakesPyTorchsStepsToPyTorchsState) {
  const json& test = xgrad_tests::optim_cases().at("optimizers").at(GetParam());
  SCOPED_TRACE(test.at("optimizer").get<std::string>() + " " + test.at("groups").dump());
  if (test.at("dtype") == "float64") {
    run_case_of_type<double>(test, 1e-12);
  } else {
    run_case_of_type<float>(test, 2e-7);
  }
}

INSTANTIATE_TEST_SUITE_P(PyTorch, OptimizerCaseTest,
                         testing::Range(std::size_t{0}, xgrad_tests::optimizer_cases));

TEST(OptimCasesTest, EachIsATest) {
  const json& cases = xgrad_tests::optim_cases();
  EXPECT_EQ(cases.at("optimizers").size(), xgrad_tests::optimizer_cases);
  EXPECT_EQ(cases.at("schedulers").size(), xgrad_tests::scheduler_cases);
  EXPECT_EQ(cases.at("lbfgs").size(), xgrad_tests::lbfgs_cases);
}

TEST(AdamTest, TheFirstStepIsTheLearningRate) {
  const Variable<float> p = sloped(1.0F, 123.0F);
  xgrad::Adam<float>({p}, {.lr = 0.25}).step();
  EXPECT_FLOAT_EQ(element(p), 0.75F);
}

/// v and the square of the mean are equal then but for rounding.
TEST(RMSpropTest, ACentredStepIsFiniteWhenGradientsDoNotChange) {
  Array<float> slopes = Array<float>::from_shape({100});
  for (std::size_t i = 0; i < 100; ++i) slopes(i) = 0.01F * static_cast<float>(i + 1);
  for (const double alpha : {0.99, 0.9, 0.5}) {
    const Variable<float> p(Array<float>({100}, 0.0F), true);
    xgrad::RMSprop<float> optimizer({p}, {.alpha = alpha, .centered = true});
    sum(p * Variable<float>(slopes)).backward();
    for (int i = 0; i < 3000; ++i) optimizer.step();
    for (const float element : p.value()) ASSERT_TRUE(std::isfinite(element)) << alpha;
  }
}

TEST(OptimizerTest, HasALearningRateThatCanBeSet) {
  const Variable<double> p = sloped(1.0, 2.0);
  xgrad::SGD<double> optimizer({p}, {.lr = 0.5});
  EXPECT_EQ(optimizer.lr(), 0.5);
  optimizer.set_lr(0.25);
  optimizer.step();
  EXPECT_EQ(element(p), 0.5);
  EXPECT_EQ(message_of([&] { optimizer.set_lr(-1); }), "SGD: lr must be finite and at least 0, got -1");
}

TEST(OptimizerTest, EveryGroupHasItsLearningRate) {
  const Variable<double> p = sloped(1.0, 2.0), q = sloped(1.0, 2.0);
  xgrad::SGD<double> optimizer(
      {{.parameters = {p}, .options = {.lr = 0.5}}, {.parameters = {q}, .options = {.lr = 0.125}}});
  EXPECT_EQ(optimizer.group_count(), 2u);
  EXPECT_EQ(optimizer.parameters().size(), 2u);
  EXPECT_EQ(optimizer.lr(1), 0.125);
  optimizer.set_lr(1, 0.25);
  optimizer.step();
  EXPECT_EQ(element(p), 0);
  EXPECT_EQ(element(q), 0.5);
  optimizer.set_lr(2);
  EXPECT_EQ(optimizer.lr(0), 2);
  EXPECT_EQ(optimizer.lr(1), 2);
  EXPECT_EQ(message_of<xgrad::IndexError>([&] { optimizer.lr(2); }), "SGD: the group must be below 2, got 2");
  EXPECT_EQ(message_of<xgrad::IndexError>([&] { optimizer.set_lr(2, 1); }),
            "SGD: the group must be below 2, got 2");
}

TEST(OptimizerTest, RefusesBadParameters) {
  const Variable<float> p(Array<float>{1}, true), q(Array<float>{1}, true);
  const std::string no_leaf = "Adam: every parameter must be a leaf that requires a gradient, parameter ";
  EXPECT_EQ(message_of([] { xgrad::Adam<float>(std::vector<Variable<float>>{}); }),
            "Adam: there must be parameters, got none");
  EXPECT_EQ(message_of([] { xgrad::Adam<float>(std::vector<xgrad::Adam<float>::Group>{}); }),
            "Adam: there must be parameters, got none");
  EXPECT_EQ(message_of([&] { xgrad::Adam<float>({p, p * 2.0F}); }), no_leaf + "1 is not");
  EXPECT_EQ(message_of([&] { xgrad::Adam<float>({Variable<float>(1.0F)}); }), no_leaf + "0 is not");
  EXPECT_EQ(message_of([&] { xgrad::Adam<float>({Variable<float>()}); }), no_leaf + "0 is not");
  EXPECT_EQ(message_of([&] {
              xgrad::AdamW<float>({{.parameters = {q, p}}, {.parameters = {p}}});
            }),
            "AdamW: every parameter must be given once, parameter 2 is parameter 1");
}

TEST(OptimizerTest, RefusesBadOptions) {
  const Variable<float> p(Array<float>{1}, true), q(Array<float>{1}, true);
  const auto sgd = [&](xgrad::SGDOptions o) { return message_of([&] { xgrad::SGD<float>({p}, o); }); };
  const auto adam = [&](xgrad::AdamOptions o) { return message_of([&] { xgrad::Adam<float>({p}, o); }); };
  EXPECT_EQ(sgd({.lr = std::nan("")}), "SGD: lr must be finite and at least 0, got nan");
  EXPECT_EQ(sgd({.lr = HUGE_VAL}), "SGD: lr must be finite and at least 0, got inf");
  EXPECT_EQ(sgd({.momentum = -0.5}), "SGD: momentum must be finite and at least 0, got -0.5");
  EXPECT_EQ(sgd({.dampening = HUGE_VAL}), "SGD: dampening must be finite, got inf");
  EXPECT_EQ(sgd({.weight_decay = -1}), "SGD: weight_decay must be finite and at least 0, got -1");
  EXPECT_EQ(sgd({.nesterov = true}), "SGD: nesterov needs a momentum and no dampening, got 0 and 0");
  EXPECT_EQ(sgd({.momentum = 0.9, .dampening = 0.5, .nesterov = true}),
            "SGD: nesterov needs a momentum and no dampening, got 0.9 and 0.5");
  EXPECT_EQ(adam({.lr = -1}), "Adam: lr must be finite and at least 0, got -1");
  EXPECT_EQ(adam({.betas = {0.9, 1}}), "Adam: betas must be in [0, 1), got 1");
  EXPECT_EQ(adam({.eps = -1}), "Adam: eps must be finite and at least 0, got -1");
  EXPECT_EQ(message_of([&] { xgrad::AdamW<float>({p}, {.weight_decay = -1}); }),
            "AdamW: weight_decay must be finite and at least 0, got -1");
  EXPECT_EQ(message_of([&] { xgrad::NAdam<float>({p}, {.momentum_decay = -1}); }),
            "NAdam: momentum_decay must be finite and at least 0, got -1");
  EXPECT_EQ(message_of([&] {
              xgrad::RAdam<float>({p}, {.betas = {-1, 0.9}});
            }),
            "RAdam: betas must be in [0, 1), got -1");
  EXPECT_EQ(message_of([&] { xgrad::RMSprop<float>({p}, {.alpha = -1}); }),
            "RMSprop: alpha must be finite and at least 0, got -1");
  EXPECT_EQ(message_of([&] { xgrad::RMSprop<float>({p}, {.momentum = -1}); }),
            "RMSprop: momentum must be finite and at least 0, got -1");
  EXPECT_EQ(message_of([&] { xgrad::Adagrad<float>({p}, {.lr_decay = -1}); }),
            "Adagrad: lr_decay must be finite and at least 0, got -1");
  EXPECT_EQ(message_of([&] { xgrad::Adagrad<float>({p}, {.initial_accumulator_value = -1}); }),
            "Adagrad: initial_accumulator_value must be finite and at least 0, got -1");
  EXPECT_EQ(message_of([&] { xgrad::Muon<float>({p}); }), "Muon: every parameter must be a matrix, got (1)");
  EXPECT_EQ(message_of([&] { xgrad::Muon<float>({p}, {.ns_steps = 100}); }),
            "Muon: ns_steps must be below 100, got 100");
  EXPECT_EQ(message_of([&] {
              xgrad::Muon<float>({p}, {.ns_coefficients = {1, 2, HUGE_VAL}});
            }),
            "Muon: ns_coefficients must be finite, got inf");
  EXPECT_EQ(message_of([&] {
              xgrad::AdamW<float>({{.parameters = {p}}, {.parameters = {q}, .options = {.eps = -2}}});
            }),
            "AdamW: eps must be finite and at least 0, got -2");
}

TEST(OptimizerTest, AStepWithoutAnyGradientIsRefused) {
  const Variable<float> p(Array<float>{1}, true), q(Array<float>{1}, true);
  const std::string text =
      ": step needs a gradient, got none for the 2 parameters; call backward() first, on a loss "
      "that depends on them";
  xgrad::SGD<float> sgd({p, q});
  xgrad::Adam<float> adam({p, q});
  EXPECT_EQ(message_of<xgrad::GraphError>([&] { sgd.step(); }), "SGD" + text);
  EXPECT_EQ(message_of<xgrad::GraphError>([&] { adam.step(); }), "Adam" + text);
  EXPECT_EQ(adam.state_dict(), xgrad::Adam<float>({p, q}).state_dict());
  sum(q).backward();
  sgd.step();
  adam.step();
  EXPECT_EQ(p.value()(0), 1.0F);
  EXPECT_LT(q.value()(0), 1.0F);
}

TEST(OptimizerTest, ABackwardThroughChangedParametersIsRefused) {
  const Variable<double> p = sloped(1.0, 2.0);
  const Variable<double> loss = sum(p * p);
  xgrad::SGD<double>({p}).step();
  EXPECT_NE(message_of([&] { loss.backward(); }), "no exception");
}

TEST(OptimizerTest, GradientsOfSmallBatchesAddUpToThoseOfALargeOne) {
  xgrad::manual_seed(5);
  const xgrad::Linear<double> large(6, 3), small(6, 3);
  small.load_state_dict(large.state_dict());
  xgrad::Adam<double> large_optimizer(large.parameters()), small_optimizer(small.parameters());
  constexpr std::size_t batches = 4, rows = 8;
  for (int step = 0; step < 5; ++step) {
    const Variable<double> x = xgrad::normal<double>({batches * rows, 6}, 0, 1);
    const Variable<double> y = xgrad::normal<double>({batches * rows, 3}, 0, 1);
    large_optimizer.zero_grad();
    mse_loss(large(x), y).backward();
    large_optimizer.step();

    small_optimizer.zero_grad();
    for (std::size_t b = 0; b < batches; ++b) {
      const Variable<double> part = narrow(x, 0, b * rows, rows), target = narrow(y, 0, b * rows, rows);
      (mse_loss(small(part), target) / double{batches}).backward();
    }
    for (std::size_t i = 0; i < large.parameters().size(); ++i) {
      const Array<double> want = large.parameters()[i].grad().value();
      expect_near(small.parameters()[i].grad().value(), json(std::vector<double>(want.begin(), want.end())),
                  1e-12, "gradient");
    }
    small_optimizer.step();
  }
  for (std::size_t i = 0; i < large.parameters().size(); ++i) {
    const Array<double>& want = large.parameters()[i].value();
    expect_near(small.parameters()[i].value(), json(std::vector<double>(want.begin(), want.end())), 1e-12,
                "parameter");
  }
}

// Saving and loading, for every optimizer and both types.

template <class Optimizer>
class OptimizerStateTest : public testing::Test {
 public:
  using T = typename std::decay_t<decltype(std::declval<Optimizer>().parameters()[0])>::value_type;
  using Options = decltype(typename Optimizer::Group{}.options);

  /// Three parameters in two groups; the last makes its first step late.
  struct Run {
    std::vector<Variable<T>> parameters{Variable<T>(Array<T>({2, 3}, T{1}), true),
                                        Variable<T>(Array<T>({4, 1}, T{-2}), true),
                                        Variable<T>(Array<T>({2, 1}, T{0.5}), true)};
    Optimizer optimizer{std::vector<typename Optimizer::Group>{
        {.parameters = {parameters[0]}, .options = options(0.01, 0.1)},
        {.parameters = {parameters[1], parameters[2]}, .options = options(0.03, 0)}}};

    void steps(int first, int end) {
      for (int step = first; step < end; ++step) {
        optimizer.zero_grad();
        for (std::size_t i = 0; i < parameters.size(); ++i) {
          if (i == 2 && step < 4) continue;
          const Variable<T>& p = parameters[i];
          sum(p * p * static_cast<T>(std::sin(step + 1.0)) + p * T{0.3}).backward();
        }
        optimizer.step();
      }
    }
  };

  static Options options(double lr, double weight_decay) {
    Options options{.lr = lr};
    options.weight_decay = weight_decay;
    if constexpr (requires { options.momentum; }) options.momentum = 0.9;
    if constexpr (requires { options.amsgrad; }) options.amsgrad = lr > 0.02;
    if constexpr (requires { options.centered; }) options.centered = lr > 0.02;
    return options;
  }

  static void expect_equal(const Run& a, const Run& b) {
    for (std::size_t i = 0; i < a.parameters.size(); ++i) {
      EXPECT_EQ(a.parameters[i].value(), b.parameters[i].value()) << "parameter " << i;
    }
    EXPECT_EQ(a.optimizer.state_dict(), b.optimizer.state_dict());
  }
};

using AllOptimizers =
    testing::Types<xgrad::SGD<float>, xgrad::SGD<double>, xgrad::Adam<float>, xgrad::Adam<double>,
                   xgrad::AdamW<float>, xgrad::AdamW<double>, xgrad::NAdam<float>, xgrad::NAdam<double>,
                   xgrad::RAdam<float>, xgrad::RAdam<double>, xgrad::RMSprop<float>, xgrad::RMSprop<double>,
                   xgrad::Adagrad<float>, xgrad::Adagrad<double>, xgrad::Muon<float>, xgrad::Muon<double>>;
TYPED_TEST_SUITE(OptimizerStateTest, AllOptimizers);

TYPED_TEST(OptimizerStateTest, ALoadedRunGoesOnAsIfItHadNotStopped) {
  for (const int stop : {0, 2, 7}) {
    typename TestFixture::Run whole, stopped, loaded;
    whole.optimizer.set_lr(1, 0.02);
    whole.steps(0, 12);
    stopped.optimizer.set_lr(1, 0.02);
    stopped.steps(0, stop);
    loaded.steps(0, 3);  // to be forgotten
    loaded.optimizer.load_state_dict(stopped.optimizer.state_dict());
    for (std::size_t i = 0; i < 3; ++i) loaded.parameters[i].assign(stopped.parameters[i].value());
    this->expect_equal(loaded, stopped);
    EXPECT_EQ(loaded.optimizer.lr(1), 0.02);
    loaded.steps(stop, 12);
    this->expect_equal(loaded, whole);
  }
}

/// Takes steps with every option unlike its default, loads the state into an optimizer with the defaults, and
/// goes on with both.
template <class Optimizer, class Options>
void expect_options_to_be_loaded(const Options& options) {
  const auto parameter = [] { return Variable<double>(Array<double>{{1, -2}, {3, -1}}, true); };
  const Variable<double> p = parameter(), q = parameter();
  Optimizer saved({p}, options), loaded({q});
  const auto step = [](Optimizer& optimizer, const Variable<double>& x, double slope) {
    optimizer.zero_grad();
    sum(x * x * slope).backward();
    optimizer.step();
  };
  for (const double slope : {0.5, -1.0}) {
    step(saved, p, slope);
    step(loaded, q, 3 * slope);
  }
  EXPECT_NE(p.value(), q.value());
  loaded.load_state_dict(saved.state_dict());
  q.assign(p.value());
  EXPECT_EQ(loaded.lr(), options.lr);
  EXPECT_EQ(loaded.state_dict(), saved.state_dict());
  for (const double slope : {2.0, 0.25, -1.5}) {
    step(saved, p, slope);
    step(loaded, q, slope);
    EXPECT_EQ(p.value(), q.value());
  }
}

TEST(OptimizerTest, TheOptionsAreLoadedToo) {
  expect_options_to_be_loaded<xgrad::SGD<double>>(
      xgrad::SGDOptions{.lr = 0.1, .momentum = 0.8, .dampening = 0.3, .weight_decay = 0.2});
  expect_options_to_be_loaded<xgrad::SGD<double>>(
      xgrad::SGDOptions{.lr = 0.1, .momentum = 0.8, .weight_decay = 0.2, .nesterov = true});
  expect_options_to_be_loaded<xgrad::Adam<double>>(
      xgrad::AdamOptions{.lr = 0.1, .betas = {0.5, 0.7}, .eps = 0.1, .weight_decay = 0.2});
  expect_options_to_be_loaded<xgrad::AdamW<double>>(
      xgrad::AdamWOptions{.lr = 0.1, .betas = {0.5, 0.7}, .eps = 0.1, .weight_decay = 0.2});
  expect_options_to_be_loaded<xgrad::SGD<double>>(xgrad::SGDOptions{.lr = 0.1, .maximize = true});
  expect_options_to_be_loaded<xgrad::Adam<double>>(
      xgrad::AdamOptions{.lr = 0.1, .amsgrad = true, .maximize = true});
  expect_options_to_be_loaded<xgrad::NAdam<double>>(xgrad::NAdamOptions{.lr = 0.1,
                                                                        .betas = {0.5, 0.7},
                                                                        .eps = 0.1,
                                                                        .weight_decay = 0.2,
                                                                        .momentum_decay = 0.1,
                                                                        .decoupled_weight_decay = true,
                                                                        .maximize = true});
  expect_options_to_be_loaded<xgrad::RAdam<double>>(xgrad::RAdamOptions{.lr = 0.1,
                                                                        .betas = {0.5, 0.9},
                                                                        .eps = 0.1,
                                                                        .weight_decay = 0.2,
                                                                        .decoupled_weight_decay = true,
                                                                        .maximize = true});
  expect_options_to_be_loaded<xgrad::RMSprop<double>>(xgrad::RMSpropOptions{.lr = 0.1,
                                                                            .alpha = 0.5,
                                                                            .eps = 0.1,
                                                                            .weight_decay = 0.2,
                                                                            .momentum = 0.5,
                                                                            .centered = true,
                                                                            .maximize = true});
  expect_options_to_be_loaded<xgrad::Adagrad<double>>(xgrad::AdagradOptions{.lr = 0.1,
                                                                            .lr_decay = 0.5,
                                                                            .weight_decay = 0.2,
                                                                            .initial_accumulator_value = 0.5,
                                                                            .eps = 0.1,
                                                                            .maximize = true});
  expect_options_to_be_loaded<xgrad::Muon<double>>(
      xgrad::MuonOptions{.lr = 0.1,
                         .weight_decay = 0.2,
                         .momentum = 0.5,
                         .nesterov = false,
                         .ns_coefficients = {2, -1.5, 0.5},
                         .eps = 0.1,
                         .ns_steps = 3,
                         .adjust_lr_fn = xgrad::MuonAdjustment::match_rms_adamw});
}

TEST(OptimizerTest, AStateOfAVersionWithoutAnOptionIsLoadedWithoutIt) {
  const Variable<double> p = sloped(1.0, 2.0), q = sloped(1.0, 2.0);
  xgrad::Adam<double> before({p}), after({q}, {.amsgrad = true, .maximize = true});
  before.step();
  after.step();
  EXPECT_EQ(before.state_dict().numbers.count("param_groups.0.amsgrad"), 0u);
  after.load_state_dict(before.state_dict());
  EXPECT_EQ(after.state_dict(), before.state_dict());
}

TEST(OptimizerTest, WhatMadeNoStepIsForgottenByLoading) {
  const Variable<double> p = sloped(1.0, 2.0), q = sloped(1.0, 2.0), r = sloped(1.0, 2.0);
  xgrad::Adam<double> fresh({p}, {.lr = 0.5}), used({q}, {.lr = 0.5}), never({r}, {.lr = 0.5});
  for (int i = 0; i < 3; ++i) used.step();
  used.load_state_dict(never.state_dict());
  EXPECT_EQ(used.state_dict(), never.state_dict());
  q.assign(p.value());
  fresh.step();
  used.step();
  EXPECT_EQ(element(q), element(p));
}

TEST(OptimizerTest, HasPyTorchsDefaults) {
  const Variable<double> p(Array<double>{1}, true);
  using Numbers = std::map<std::string, double>;
  const auto numbers = [](const auto& optimizer) {
    Numbers found;
    for (const auto& [name, number] : optimizer.state_dict().numbers)
      if (name.starts_with("param_groups.0.") && name != "param_groups.0.params.0")
        found[name.substr(15)] = number;
    return found;
  };
  EXPECT_EQ(numbers(xgrad::SGD<double>({p})),
            (Numbers{{"lr", 1e-3}, {"momentum", 0}, {"dampening", 0}, {"weight_decay", 0}, {"nesterov", 0}}));
  EXPECT_EQ(
      numbers(xgrad::Adam<double>({p})),
      (Numbers{{"lr", 1e-3}, {"betas.0", 0.9}, {"betas.1", 0.999}, {"eps", 1e-8}, {"weight_decay", 0}}));
  EXPECT_EQ(
      numbers(xgrad::AdamW<double>({p})),
      (Numbers{{"lr", 1e-3}, {"betas.0", 0.9}, {"betas.1", 0.999}, {"eps", 1e-8}, {"weight_decay", 1e-2}}));
  EXPECT_EQ(numbers(xgrad::NAdam<double>({p})), (Numbers{{"lr", 2e-3},
                                                         {"betas.0", 0.9},
                                                         {"betas.1", 0.999},
                                                         {"eps", 1e-8},
                                                         {"weight_decay", 0},
                                                         {"momentum_decay", 4e-3},
                                                         {"decoupled_weight_decay", 0}}));
}

TEST(MuonTest, AStepIsNearlyOrthogonalWhateverTheScale) {
  const Variable<double> p(Array<double>({8, 3}, 0.0), true);
  xgrad::manual_seed(3);
  const Variable<double> slope(xgrad::normal<double>({8, 3}));
  sum(p * slope * 1e6).backward();
  xgrad::Muon<double>({p}, {.lr = 1}).step();
  const Variable<double> gram = matmul(permute(p, {1, 0}), p) * (3.0 / 8);  // without sqrt(A / B)
  for (std::size_t i = 0; i < 3; ++i) {
    for (std::size_t k = 0; k < 3; ++k) EXPECT_NEAR(gram.value()(i, k), i == k ? 1 : 0, 0.6) << i << " " << k;
  }
}

TEST(MuonTest, AGradientOfZerosLeavesTheParameter) {
  const Variable<float> p(Array<float>({2, 2}, 3.0F), true);
  sum(p * 0.0F).backward();
  xgrad::Muon<float>({p}, {.weight_decay = 0}).step();
  EXPECT_EQ(p.value(), (Array<float>({2, 2}, 3.0F)));
}

TYPED_TEST(OptimizerStateTest, NamesEveryWrongEntryAndLoadsNothing) {
  using T = typename TestFixture::T;
  typename TestFixture::Run run, other;
  run.steps(0, 2);
  other.steps(0, 3);
  const TrainingState before = run.optimizer.state_dict();
  TrainingState state = other.optimizer.state_dict();
  xgrad::StateDict<T>& arrays = state.template arrays<T>();
  const std::string array = arrays.begin()->first;  // of parameter 0
  arrays[array] = Array<T>({3, 2}, T{0});
  arrays["state.9.exp_avg"] = Array<T>({2}, T{0});
  state.numbers["param_groups.0.params.0"] = 1;
  state.numbers["lr"] = 1;
  state.numbers.erase("param_groups.1.weight_decay");
  EXPECT_EQ(message_of<xgrad::ValueError>([&] { run.optimizer.load_state_dict(state); }),
            "load_state_dict: 'param_groups.0.params.0' must be 0, got 1; 'param_groups.1.weight_decay' is "
            "missing; '" +
                array +
                "' must have shape (2, 3), got (3, 2); 'state.9.exp_avg' is unexpected; 'lr' is unexpected");
  state = other.optimizer.state_dict();
  state.numbers["param_groups.1.weight_decay"] = -1;
  EXPECT_NE(message_of<xgrad::ValueError>([&] {
              run.optimizer.load_state_dict(state);
            }).find("weight_decay must be finite and at least 0, got -1"),
            std::string::npos);
  state = other.optimizer.state_dict();
  state.numbers["param_groups.0.lr"] = std::nan("");
  EXPECT_NE(message_of<xgrad::ValueError>([&] {
              run.optimizer.load_state_dict(state);
            }).find("lr must be finite and at least 0, got nan"),
            std::string::npos);
  EXPECT_EQ(run.optimizer.state_dict(), before);
}

TEST(OptimizerTest, RefusesAStateOfImpossibleNumbers) {
  const Variable<double> p = sloped(1.0, 2.0), q = sloped(1.0, 2.0);
  xgrad::Adam<double> adam({p});
  adam.step();
  TrainingState state = adam.state_dict();
  for (const auto& [number, text] :
       {std::pair{2.5, "2.5"}, {-1.0, "-1"}, {std::nan(""), "nan"}, {1e30, "1e+30"}}) {
    state.numbers["state.0.step"] = number;
    EXPECT_EQ(message_of([&] { adam.load_state_dict(state); }),
              std::string("load_state_dict: 'state.0.step' must be a whole number, got ") + text);
  }
  state.numbers.erase("state.0.step");
  EXPECT_EQ(message_of([&] { adam.load_state_dict(state); }), "load_state_dict: 'state.0.step' is missing");

  xgrad::SGD<double> sgd({q});
  state = sgd.state_dict();
  state.numbers["param_groups.0.nesterov"] = 2;
  EXPECT_EQ(message_of([&] { sgd.load_state_dict(state); }),
            "load_state_dict: 'param_groups.0.nesterov' must be 0 or 1, got 2");
  state.numbers["param_groups.0.nesterov"] = 1;
  EXPECT_EQ(message_of([&] { sgd.load_state_dict(state); }),
            "load_state_dict: SGD: nesterov needs a momentum and no dampening, got 0 and 0");
  state = sgd.state_dict();
  state.numbers["param_groups.0.initial_lr"] = -1;
  EXPECT_EQ(message_of([&] { sgd.load_state_dict(state); }),
            "load_state_dict: SGD: initial_lr must be finite and at least 0, got -1");
}

}  // namespace optimizer_test
