// What the training programs share: their options, the run itself, and its files.

#include "../../apps/training/training_run.hpp"

#include <algorithm>
#include <cmath>
#include <csignal>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <limits>
#include <numeric>
#include <optional>
#include <sstream>

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include <xgrad/base/detail/text/json_tree.hpp>
#include <xgrad/xgrad.hpp>

#include "../../apps/common/command_line.hpp"
#include "expect_error.hpp"
#include "files.hpp"
#include "signals.hpp"
#ifdef XGRAD_WITH_MPI
#include "../../apps/ranks/mpi_ranks.hpp"
#include "mpi/ranks.hpp"
#endif

namespace training_run_test {

using apps::TrainingOptions, apps::TrainingRun;
using xgrad::Array, xgrad::Ids, xgrad::StateDict, xgrad::Variable, xgrad::WeightedLoss;
using Chosen = std::span<const std::size_t>;
using xgrad_tests::message_of;

/// What is written to stderr while it lives.
class CapturedStderr {
 public:
  CapturedStderr() { testing::internal::CaptureStderr(); }
  CapturedStderr(const CapturedStderr&) = delete;
  CapturedStderr& operator=(const CapturedStderr&) = delete;
  ~CapturedStderr() {
    if (!taken_) testing::internal::GetCapturedStderr();
  }
  std::string text() {
    taken_ = true;
    return testing::internal::GetCapturedStderr();
  }

 private:
  bool taken_ = false;
};

/// What a test's run remembers besides the model.
struct Counter : xgrad::Stateful {
  std::size_t steps = 0, evaluations = 0;

 protected:
  void list_state(xgrad::StateArchive& state) override {
    state.number("steps", steps);
    state.number("evaluations", evaluations);
  }
};

struct Plan {
  std::size_t warmup = 2;
  std::vector<double> scores = {};  ///< of the evaluations; none: it is not evaluated
  std::size_t every = 3, patience = 2;
  std::size_t signal_at = 0;  ///< the step that is interrupted, counted from 1
  float scale = 1;            ///< of the loss
  float noise = 0;            ///< that each shard draws
  xgrad::Metadata config = {};
};

struct Outcome {
  xgrad::TrainingLog log;
  std::vector<xgrad::StepResult> steps;
  std::vector<StateDict<float>> evaluated;  ///< the weights at each evaluation
  StateDict<float> weights;                 ///< at the end
  double best_score = 0;
  xgrad::detail::JsonTree metrics;
  std::string shown;  ///< on stderr
};

TrainingOptions small_options() {
  return {{.seed = 4, .steps = 10, .batch = 5, .lr = 0.05},
          {.d_model = 3, .heads = 1, .d_ff = 6, .layers = 1}};
}

constexpr std::size_t batch_size = 8;

/// Draws the examples of a batch, and gives the loss of some of them; noise is what a model draws for
/// dropout.
class Batch {
 public:
  WeightedLoss<float> loss(const xgrad::Linear<float>& model, Chosen chosen, float scale,
                           float noise = 0) const {
    Array<float> x = Array<float>::from_shape({chosen.size(), 3});
    Ids y = Ids::from_shape({chosen.size()});
    for (std::size_t i = 0; i < chosen.size(); ++i) {
      std::copy_n(&x_(chosen[i], 0), 3, &x(i, 0));
      y(i) = static_cast<std::int64_t>(chosen[i] % 2);
    }
    if (noise > 0) x += noise * xgrad::normal<float>(x.shape());
    return {.sum = cross_entropy(model(x), y, {.reduction = xgrad::Reduction::sum}) * scale,
            .weight = static_cast<double>(chosen.size()),
            .tokens = chosen.size()};
  }

  static std::vector<std::size_t> examples() {
    std::vector<std::size_t> all(batch_size);
    std::iota(all.begin(), all.end(), std::size_t{0});
    return all;
  }

 private:
  Array<float> x_ = xgrad::normal<float>({batch_size, 3});
};

xgrad::StepResult update(TrainingRun& run, const xgrad::Linear<float>& model, const Plan& plan) {
  const Batch batch;
  return run.update(Batch::examples(),
                    [&](Chosen chosen) { return batch.loss(model, chosen, plan.scale, plan.noise); });
}

Outcome train(const TrainingOptions& options, const Plan& plan) {
  const xgrad_tests::SignalHandler handler(SIGTERM, SIG_DFL);
  CapturedStderr err;
  xgrad::manual_seed(options.seed);
  const xgrad::Linear<float> model(3, 2);
  Outcome outcome;
  TrainingRun run(options, model, plan.warmup, plan.config);
  Counter counter;
  run.keep("counter", counter);
  if (!plan.scores.empty()) {
    run.evaluate(plan.every, plan.patience, [&] {
      outcome.evaluated.push_back(model.state_dict());
      return plan.scores.at(counter.evaluations++);
    });
  }
  outcome.log = run.fit([&] {
    if (++counter.steps == plan.signal_at) std::raise(SIGTERM);
    outcome.steps.push_back(update(run, model, plan));
    return outcome.steps.back();
  });
  outcome.weights = model.state_dict();
  outcome.best_score = run.best_score();
  outcome.metrics = run.metrics(outcome.log);
  outcome.shown = err.text();
  return outcome;
}

// ---- Steps ----

TEST(TrainingRunTest, RatesRiseLinearlyAndThenFallAlongACosine) {
  constexpr double pi = 3.14159265358979323846;
  const std::vector<xgrad::StepResult> steps = train(small_options(), {.warmup = 4}).steps;
  ASSERT_EQ(steps.size(), 10u);
  for (std::size_t i = 0; i < 10; ++i) {
    const auto step = static_cast<double>(i);
    const double start = 0.25, rise = start + (1 - start) * step / 4,
                 fall = (1 + std::cos(pi * (step - 4) / 6)) / 2;
    ASSERT_TRUE(steps[i].lr);
    EXPECT_NEAR(*steps[i].lr, 0.05 * (i < 4 ? rise : fall), 1e-15)
        << "the rate that step " << i << " was made with";
    EXPECT_EQ(steps[i].tokens, 8u);
  }
}

TEST(TrainingRunTest, RatesNeedNoWarmupAndNoStepsAfterIt) {
  std::vector<double> rates;
  for (const auto& step : train(small_options(), {.warmup = 0}).steps) rates.push_back(*step.lr);
  EXPECT_EQ(rates.front(), 0.05);
  EXPECT_EQ(rates[1], 0.05) << "a warm-up has a step at least";
  EXPECT_LT(rates[2], 0.05);
  rates.clear();
  for (const auto& step : train(small_options(), {.warmup = 20}).steps) rates.push_back(*step.lr);
  for (std::size_t i = 0; i < 10; ++i) {
    const auto step = static_cast<double>(i);
    EXPECT_NEAR(rates[i], 0.05 * (1 + 19 * step / 20) / 20, 1e-15) << "it only rises";
  }
}

TEST(TrainingRunTest, AStepIsAdamWsWithGradientsOfNormOneAtMost) {
  for (const float scale : {0.01F, 50.0F}) {
    const Outcome outcome = train(small_options(), {.scale = scale});
    xgrad::manual_seed(4);
    const xgrad::Linear<float> model(3, 2);
    xgrad::AdamW<float> optimizer(model.parameters());
    for (const xgrad::StepResult& step : outcome.steps) {
      optimizer.set_lr(*step.lr);
      optimizer.zero_grad();
      const auto [sum, weight, tokens] = Batch().loss(model, Batch::examples(), scale);
      const Variable<float> loss = sum / static_cast<float>(weight);  // a power of two: nothing is rounded
      loss.backward();
      const double norm = clip_grad_norm(model.parameters(), 1.0);
      EXPECT_EQ(norm > 1, scale > 1) << norm;
      EXPECT_EQ(step.grad_norm, norm) << "before clipping";
      EXPECT_EQ(step.loss, static_cast<double>(loss.item()));
      optimizer.step();
    }
    EXPECT_EQ(outcome.weights, model.state_dict());
  }
}

TEST(TrainingRunTest, EndsAfterItsStepsWithTheLastWeights) {
  const Outcome outcome = train(small_options(), {});
  EXPECT_EQ(outcome.log.steps, 10u);
  EXPECT_STREQ(apps::outcome(outcome.log), "trained");
  EXPECT_EQ(outcome.metrics.size(), 5u);
  EXPECT_EQ(outcome.metrics.at("steps"), 10);
  EXPECT_EQ(outcome.metrics.at("seed"), 4);
  EXPECT_EQ(outcome.metrics.at("interrupted"), false);
  EXPECT_GT(outcome.metrics.at("seconds"), 0);
  EXPECT_EQ(outcome.metrics.at("loss"), xgrad::detail::JsonTree(outcome.log.losses));
  TrainingOptions other = small_options();
  other.seed = 5;
  EXPECT_NE(train(other, {}).weights, outcome.weights);
}

TEST(TrainingRunTest, AMetricsFileOnAFullDiskDoesNotCostTheModel) {
  const xgrad_tests::TemporaryFolder folder;
  const std::string path = folder.path("model");
  TrainingOptions options = small_options();
  options.log = "/dev/full";
  const xgrad::Linear<float> model(3, 2);
  TrainingRun run(options, model, 2, {});
  run.save_to(path, [](const std::string& place) { std::ofstream(place) << "weights"; });
  CapturedStderr shown;
  EXPECT_EQ(message_of<xgrad::FileError>([&] { run.fit([&] { return update(run, model, {}); }); }),
            "fit: /dev/full: cannot be written: No space left on device");
  EXPECT_EQ(xgrad_tests::read_bytes(path), "weights");
}

TEST(TrainingRunTest, AnAnomalyIsNamedIfThatIsAskedFor) {
  TrainingOptions options = small_options();
  const float infinite = std::numeric_limits<float>::infinity();
  EXPECT_TRUE(
      message_of([&] { train(options, {.scale = infinite}); }).starts_with("fit: the loss of step 0 is inf"));
  options.detect_anomaly = true;
  EXPECT_EQ(message_of([&] { train(options, {.scale = std::nanf("")}); }).find("fit: "), std::string::npos);
  EXPECT_EQ(train(options, {}).weights, train(small_options(), {}).weights);
}

// ---- Evaluations ----

TEST(TrainingRunTest, KeepsTheBestWeightsAndStopsAfterItsPatience) {
  TrainingOptions options = small_options();
  options.steps = 30;
  const Outcome outcome = train(options, {.scores = {0.1, 0.5, 0.5, 0.25}});
  EXPECT_EQ(outcome.log.steps, 12u);
  EXPECT_STREQ(apps::outcome(outcome.log), "stopped");
  ASSERT_EQ(outcome.evaluated.size(), 4u);
  EXPECT_NE(outcome.evaluated[1], outcome.evaluated[2]);
  EXPECT_EQ(outcome.weights, outcome.evaluated[1]);
  EXPECT_EQ(outcome.best_score, 0.5);
  for (const char* line : {"step 3: score 0.1000, best 0.1000\n", "step 6: score 0.5000, best 0.5000\n",
                           "step 12: score 0.2500, best 0.5000\n"})
    EXPECT_NE(outcome.shown.find(line), std::string::npos) << outcome.shown;
}

TEST(TrainingRunTest, TheBestWeightsAreLoadedWhenAllStepsAreDoneToo) {
  const Outcome outcome = train(small_options(), {.scores = {0.3, 0.2, 0.1}, .patience = 9});
  EXPECT_EQ(outcome.log.steps, 10u);
  EXPECT_STREQ(apps::outcome(outcome.log), "trained");
  EXPECT_EQ(outcome.weights, outcome.evaluated[0]);
}

TEST(TrainingRunTest, EvaluatingChangesNoStep) {
  const Outcome plain = train(small_options(), {}), evaluated = train(small_options(), {.scores = {1, 2, 3}});
  EXPECT_EQ(evaluated.log.losses, plain.log.losses);
}

// ---- Checkpoints ----

class ResumeTest : public testing::Test {
 protected:
  ResumeTest() { options_.checkpoint = folder_.path("run"); }

  TrainingOptions resuming() const {
    TrainingOptions options = options_;
    options.resume = true;
    return options;
  }

  /// Interrupts the run in that step, and goes on with it.
  std::pair<Outcome, Outcome> in_two_parts(Plan plan, std::size_t step) const {
    plan.signal_at = step;
    Outcome first = train(options_, plan);
    plan.signal_at = 0;
    return {std::move(first), train(resuming(), plan)};
  }

  /// The random numbers of a resumed run are those of a whole one.
  void expect_that_draws_go_on() const {
    TrainingOptions without_file = options_;
    without_file.checkpoint.clear();
    const Plan plan{.noise = 0.5};
    EXPECT_EQ(in_two_parts(plan, 4).second.weights, train(without_file, plan).weights);
  }

  std::string refusal(const TrainingOptions& options, const Plan& plan) const {
    const std::string text = message_of<xgrad::ValueError>([&] { train(options, plan); });
    return text.starts_with(options_.checkpoint + ": ") ? text.substr(options_.checkpoint.size() + 2) : text;
  }

  xgrad_tests::TemporaryFolder folder_;
  TrainingOptions options_ = small_options();
};

TEST_F(ResumeTest, AResumedRunEndsAsAWholeOne) {
  const Outcome whole = train(small_options(), {});
  for (const std::size_t step : {1, 2, 5, 9}) {
    const auto [first, second] = in_two_parts({}, step);
    EXPECT_EQ(first.log.steps, step);
    EXPECT_STREQ(apps::outcome(first.log), "interrupted");
    EXPECT_EQ(first.metrics.at("interrupted"), true);
    EXPECT_NE(first.shown.find("interrupted after step " + std::to_string(step) +
                               "; the same command with --resume continues the run\n"),
              std::string::npos)
        << first.shown;
    EXPECT_TRUE(second.shown.starts_with("resumed after step " + std::to_string(step) + "\n"))
        << second.shown;
    EXPECT_EQ(second.log.steps, 10u);
    EXPECT_EQ(second.steps.size(), 10 - step);
    EXPECT_EQ(second.weights, whole.weights);
    std::vector<double> losses = first.log.losses;
    losses.insert(losses.end(), second.log.losses.begin(), second.log.losses.end());
    EXPECT_EQ(losses, whole.log.losses);
    for (std::size_t i = 0; i < second.steps.size(); ++i)
      EXPECT_EQ(second.steps[i].lr, whole.steps[step + i].lr);
  }
}

TEST_F(ResumeTest, WhatTheStepsDrawGoesOn) { expect_that_draws_go_on(); }

#ifdef XGRAD_WITH_MPI

TEST_F(ResumeTest, WhatTheShardsDrawGoesOn) {
  xgrad_tests::Ranks::run(1, [this](xgrad::mpi::Communicator& one) {
    apps::MpiRanks ranks(one);
    options_.ranks = &ranks;
    options_.shards = 3;
    expect_that_draws_go_on();
  });
}

TEST(TrainingRunTest, ShardsAddUpToTheBatchAndDrawForThemselves) {
  const Outcome whole = train(small_options(), {});
  xgrad_tests::Ranks::run(1, [&](xgrad::mpi::Communicator& one) {
    apps::MpiRanks ranks(one);
    TrainingOptions options = small_options();
    options.ranks = &ranks;
    options.shards = 4;
    const Outcome cut = train(options, {});
    EXPECT_NEAR(cut.log.losses.back(), whole.log.losses.back(), 1e-6);
    EXPECT_EQ(cut.steps.back().tokens, 8u);
    const Outcome noisy = train(options, {.noise = 0.5});
    EXPECT_EQ(train(options, {.noise = 0.5}).weights, noisy.weights);
    options.shards = 2;
    EXPECT_GT(std::abs(train(options, {.noise = 0.5}).log.losses[0] - noisy.log.losses[0]), 1e-4);
    options.shards = 1;
    EXPECT_EQ(train(options, {.noise = 0.5}).weights, train(small_options(), {.noise = 0.5}).weights);
  });
}

#endif

TEST_F(ResumeTest, EarlyStoppingGoesOnWithItsBestWeights) {
  options_.steps = 30;
  TrainingOptions without_file = options_;
  without_file.checkpoint.clear();
  const Plan plan{.scores = {0.1, 0.5, 0.3, 0.2}};
  const Outcome whole = train(without_file, plan);
  ASSERT_EQ(whole.log.steps, 12u);
  for (const std::size_t step : {2, 4, 7, 10}) {  // before, between and after the evaluations that matter
    const auto [first, second] = in_two_parts(plan, step);
    EXPECT_EQ(second.log.steps, 12u) << step;
    EXPECT_TRUE(second.log.stopped) << step;
    EXPECT_EQ(second.best_score, 0.5) << step;
    EXPECT_EQ(second.weights, whole.evaluated[1]) << step;
    EXPECT_EQ(second.evaluated.back(), whole.evaluated[3])
        << "it goes on with the last weights, not the best";
    if (step >= 6) {
      EXPECT_EQ(first.weights, whole.evaluated[1]) << step;
    }
  }
}

TEST_F(ResumeTest, ItsLogGoesOn) {
  options_.log = folder_.path("log");
  in_two_parts({}, 6);
  std::istringstream lines(xgrad_tests::read_bytes(options_.log));
  std::size_t count = 0;
  std::string line;
  std::getline(lines, line);
  EXPECT_TRUE(nlohmann::json::parse(line).contains("run"));
  for (; std::getline(lines, line); ++count) {
    const auto json = nlohmann::json::parse(line);
    EXPECT_EQ(json.at("step"), count);
    for (const char* key : {"loss", "lr", "grad_norm", "seconds"}) EXPECT_TRUE(json.contains(key)) << key;
    EXPECT_EQ(json.at("tokens"), 8);
  }
  EXPECT_EQ(count, 10u);
}

TEST_F(ResumeTest, EveryOptionMustBeTheSame) {
  const Plan plan{.scores = {1, 2, 3}, .signal_at = 4, .config = {{"--data", "here"}}};
  train(options_, plan);
  const auto changed = [&](auto change, Plan with) {
    TrainingOptions options = resuming();
    change(options);
    with.signal_at = 0;
    return refusal(options, with);
  };
  const auto must_be = [](const std::string& name, const std::string& before, const std::string& now) {
    return name + " must be as in the checkpoint, '" + before + "', got " + now;
  };
  EXPECT_EQ(changed([](auto& o) { o.seed = 5; }, plan), must_be("--seed", "4", "'5'"));
  EXPECT_EQ(changed([](auto& o) { o.steps = 11; }, plan), must_be("--steps", "10", "'11'"));
  EXPECT_EQ(changed([](auto& o) { o.batch = 6; }, plan), must_be("--batch", "5", "'6'"));
  EXPECT_EQ(changed([](auto& o) { o.d_model = 4; }, plan), must_be("--d-model", "3", "'4'"));
  EXPECT_EQ(changed([](auto& o) { o.heads = 2; }, plan), must_be("--heads", "1", "'2'"));
  EXPECT_EQ(changed([](auto& o) { o.d_ff = 7; }, plan), must_be("--d-ff", "6", "'7'"));
  EXPECT_EQ(changed([](auto& o) { o.layers = 2; }, plan), must_be("--layers", "1", "'2'"));
  EXPECT_EQ(changed([](auto& o) { o.lr = 0.1; }, plan), must_be("--lr", "0.05", "'0.1'"));
  EXPECT_EQ(changed([](auto& o) { o.shards = 2; }, plan), must_be("--shards", "1", "'2'"));
  const auto same = [](auto&) {};
  Plan other = plan;
  other.patience = 3;
  EXPECT_EQ(changed(same, other), must_be("--patience", "2", "'3'"));
  other = plan;
  other.config["--data"] = "there";
  EXPECT_EQ(changed(same, other), must_be("--data", "here", "'there'"));
  other.config.clear();
  EXPECT_EQ(changed(same, other), must_be("--data", "here", "nothing"));
  other = plan;
  other.config["--more"] = "1";
  EXPECT_EQ(changed(same, other), "--more must be as in the checkpoint, nothing, got '1'");
  EXPECT_EQ(changed(same, plan), "no exception");
}

TEST_F(ResumeTest, WithoutItsFileItCannot) {
  EXPECT_EQ(message_of<xgrad::FileError>([&] { train(resuming(), {}); }),
            options_.checkpoint + ": cannot be read: No such file or directory");
}

TEST_F(ResumeTest, ItSavesEveryThousandSteps) {
  options_.steps = 1001;
  const xgrad::Linear<float> model(3, 2);
  TrainingRun run(options_, model, 1);
  std::size_t step = 0;
  CapturedStderr err;
  run.fit([&] {
    EXPECT_EQ(std::filesystem::exists(options_.checkpoint), ++step > 1000) << step;
    return update(run, model, {});
  });
}

TEST_F(ResumeTest, WithoutACheckpointNothingIsSavedAndNothingSaidOfIt) {
  options_.checkpoint.clear();
  const Outcome outcome = train(options_, {.signal_at = 3});
  EXPECT_TRUE(outcome.log.interrupted);
  EXPECT_EQ(outcome.shown.find("--resume"), std::string::npos) << outcome.shown;
  EXPECT_EQ(folder_.file_count(), 0u);
}

// ---- The command line and the files ----

/// Reads a command line: its arguments, a blank between them.
std::optional<int> parse(const std::string& arguments, TrainingOptions& options) {
  std::istringstream stream("program " + arguments);
  std::vector<std::string> words{std::istream_iterator<std::string>(stream), {}};
  std::vector<char*> pointers;
  for (std::string& word : words) pointers.push_back(word.data());
  apps::CommandLine app;
  apps::add_options(app, options);
  return app.parse(static_cast<int>(pointers.size()), pointers.data());
}

TEST(TrainingOptionsTest, AreReadFromTheCommandLine) {
  TrainingOptions options = small_options();
  EXPECT_FALSE(parse(
      "--seed 18446744073709551615 --steps 100000000 --batch 2 --d-model 4096 --heads 6 --d-ff 7 --layers 64 "
      "--lr 0.25 --shards 8 --metrics m --log l --checkpoint c --resume --detect-anomaly "
      "--precision medium",
      options));
  EXPECT_EQ(options.seed, std::numeric_limits<std::uint64_t>::max());
  EXPECT_EQ(options.steps, 100000000u);
  EXPECT_EQ(options.batch, 2u);
  EXPECT_EQ(options.d_model, 4096u);
  EXPECT_EQ(options.heads, 6u);
  EXPECT_EQ(options.d_ff, 7u);
  EXPECT_EQ(options.layers, 64u);
  EXPECT_EQ(options.lr, 0.25);
  EXPECT_EQ(options.shards, 8u);
  EXPECT_EQ(options.metrics, "m");
  EXPECT_EQ(options.log, "l");
  EXPECT_EQ(options.checkpoint, "c");
  EXPECT_TRUE(options.resume);
  EXPECT_TRUE(options.detect_anomaly);
  EXPECT_EQ(options.precision, "medium");
}

TEST(TrainingOptionsTest, KeepTheirDefaultsAndRefuseWhatCannotBe) {
  TrainingOptions options = small_options();
  EXPECT_FALSE(parse("", options));
  EXPECT_EQ(options.seed, 4u);
  EXPECT_EQ(options.steps, 10u);
  EXPECT_EQ(options.lr, 0.05);
  EXPECT_FALSE(options.shards);
  EXPECT_TRUE(options.metrics.empty() && options.log.empty() && options.checkpoint.empty());
  EXPECT_FALSE(options.resume || options.detect_anomaly);
  EXPECT_EQ(options.precision, "highest");
  EXPECT_EQ(TrainingOptions{}.seed, 0u);
  const auto error_of = [](const std::string& arguments) {
    TrainingOptions refused = small_options();
    CapturedStderr err;
    EXPECT_EQ(parse(arguments, refused), 2);
    return err.text();
  };
  const std::string end = "; --help lists the arguments\n";
  const std::string sizes = "[1, 4096]";
  for (const auto& [option, value, range] : {std::array<std::string, 3>{"--batch", "0", sizes},
                                             {"--batch", "4097", sizes},
                                             {"--d-model", "4097", sizes},
                                             {"--heads", "0", sizes},
                                             {"--shards", "0", sizes},
                                             {"--d-ff", "4097", sizes},
                                             {"--layers", "65", "[1, 64]"},
                                             {"--layers", "0", "[1, 64]"},
                                             {"--steps", "100000001", "[1, 100000000]"},
                                             {"--lr", "10.5", "[1e-09, 10]"},
                                             {"--lr", "1e-10", "[1e-09, 10]"},
                                             {"--seed", "+1", "[0, 18446744073709551615]"}}) {
    EXPECT_EQ(error_of(option + " " + value),
              "program: " + option + ": must be a number in " + range + ", got " + value + end);
  }
  EXPECT_EQ(error_of("--resume"), "program: --resume requires --checkpoint" + end);
  EXPECT_EQ(error_of("--precision low"), "program: --precision: low not in {highest,medium}" + end);
}

TEST(RunMetricsFileTest, AppearsWholeWhenItIsWritten) {
  const xgrad_tests::TemporaryFolder folder;
  const std::string path = folder.path("metrics.json");
  {
    apps::MetricsFile file(path);
    EXPECT_FALSE(std::filesystem::exists(path));
    file.write({{"steps", 3}});
  }
  EXPECT_EQ(xgrad_tests::read_bytes(path), "{\n  \"steps\": 3\n}\n");
  { const apps::MetricsFile file(folder.path("unwritten")); }
  apps::MetricsFile("").write({{"steps", 3}});
  EXPECT_EQ(folder.file_count(), 1u);
  const std::string nowhere = folder.path("missing/metrics");
  EXPECT_EQ(message_of<xgrad::FileError>([&] { apps::MetricsFile file(nowhere); }),
            nowhere + ": cannot be written: No such file or directory");
}

TEST(CheckWritableTest, TriesAndLeavesNothing) {
  const xgrad_tests::TemporaryFolder folder;
  apps::check_writable("");
  apps::check_writable(folder.path("model"));
  EXPECT_EQ(folder.file_count(), 0u);
  const std::string there = folder.write("there", "old");
  apps::check_writable(there);
  EXPECT_EQ(xgrad_tests::read_bytes(there), "old");
  EXPECT_EQ(message_of<xgrad::FileError>([&] { apps::check_writable(folder.path("missing/model")); }),
            folder.path("missing/model") + ": cannot be written: No such file or directory");
}

TEST(CheckWritableTest, LeavesNoFolder) {
  const xgrad_tests::TemporaryFolder folder;
  apps::check_writable_folder(folder.path("a/b/../c/"));
  EXPECT_EQ(folder.file_count(), 0u);
  std::filesystem::create_directory(folder.path("there"));
  apps::check_writable_folder(folder.path("there"));
  EXPECT_TRUE(std::filesystem::exists(folder.path("there")));
}

TEST(SaveOrRescueTest, WhatCannotBeSavedIsSavedBesideItOrInATemporaryFolder) {
  const xgrad_tests::TemporaryFolder folder;
  const std::string wanted = folder.path("model");
  std::vector<std::string> tried;
  const auto save_after = [&](std::size_t failures) {
    tried.clear();
    return [&tried, failures](const std::string& path) {
      tried.push_back(path);
      if (tried.size() <= failures) throw xgrad::FileError(path + ": cannot be written: it is full");
      std::ofstream(path) << "weights";
    };
  };
  EXPECT_EQ(apps::save_or_rescue(wanted, save_after(0)), wanted);
  for (const std::size_t failures : {1, 2}) {
    CapturedStderr shown;
    const std::string other = apps::save_or_rescue(wanted + "/", save_after(failures));
    EXPECT_EQ(shown.text(),
              wanted + "/: cannot be written: it is full; the model is saved in " + other + " instead\n");
    EXPECT_EQ(tried.size(), failures + 1);
    EXPECT_EQ(xgrad_tests::read_bytes(other), "weights");
    const std::filesystem::path parent = std::filesystem::path(other).parent_path();
    EXPECT_EQ(std::filesystem::path(other).filename(), "model");
    EXPECT_EQ(parent.parent_path(), failures == 1 ? std::filesystem::path(wanted).parent_path()
                                                  : std::filesystem::temp_directory_path());
    std::filesystem::remove_all(parent);
  }
  const std::size_t before = folder.file_count();
  EXPECT_EQ(message_of<xgrad::FileError>([&] { apps::save_or_rescue(wanted, save_after(3)); }),
            wanted + ": cannot be written: it is full");
  EXPECT_EQ(folder.file_count(), before) << "no empty folder is left";
}

TEST(CheckRoomTest, AFileThatIsThereTwiceNeedsTwiceTheSpace) {
  const xgrad_tests::TemporaryFolder folder;
  const std::string there = folder.write("there", "old"), missing = folder.path("a/b/model");
  const std::uint64_t much = std::uint64_t{1} << 60;
  EXPECT_NO_THROW(apps::check_room({{missing, 1000}, {there, 1000, true}}));
  const auto needed = [&](const std::vector<apps::FileToWrite>& files) {
    const std::string what = message_of<xgrad::FileError>([&] { apps::check_room(files); });
    const std::size_t begin = what.find(": needs ") + 8;
    return std::stoull(what.substr(begin, what.find(" bytes, and the disk has ") - begin));
  };
  EXPECT_EQ(needed({{missing, much}}), much);
  EXPECT_EQ(needed({{missing, much, true}}), 2 * much);
  EXPECT_EQ(needed({{there, much, true}}), much) << "the old one has its space";
  EXPECT_EQ(needed({{missing, much}, {there, 10, true}}), much + 10);
}

}  // namespace training_run_test
