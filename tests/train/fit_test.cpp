// The training loop: what it logs, shows, saves and survives.

#include <fcntl.h>
#include <stdlib.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <csignal>
#include <cstdio>
#include <filesystem>
#include <limits>
#include <optional>
#include <regex>
#include <sstream>

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include <xgrad/base/error.hpp>
#include <xgrad/base/random.hpp>
#include <xgrad/train/detail/interrupt_guard.hpp>
#include <xgrad/train/detail/progress_bar.hpp>
#include <xgrad/train/early_stopping.hpp>
#include <xgrad/train/trainer.hpp>

#include "expect_error.hpp"
#include "files.hpp"
#include "signals.hpp"

namespace fit_test {

using xgrad::StepResult;
using xgrad_tests::SignalHandler;

StepResult constant(std::size_t) { return {.loss = 1}; }

TEST(FitTest, LogsWhatItDid) {
  const xgrad::TrainingLog log = xgrad::fit(
      5, [](std::size_t step) { return StepResult{.loss = static_cast<double>(step)}; }, {.progress = false});
  EXPECT_EQ(log.losses, (std::vector<double>{0, 1, 2, 3, 4}));
  EXPECT_GT(log.seconds, 0);
  EXPECT_FALSE(log.interrupted);
}

int signals_seen = 0;
void see_signal(int) { ++signals_seen; }

TEST(FitTest, ASignalEndsItAfterTheStep) {
  for (const int signal : {SIGINT, SIGTERM, SIGHUP}) {
    signals_seen = 0;
    const SignalHandler mine(signal, see_signal);
    const auto step = [signal](std::size_t i) {
      if (i == 3) std::raise(signal);
      return StepResult{.loss = 1};
    };
    const xgrad::TrainingLog log = xgrad::fit(1000, step, {.progress = false});
    EXPECT_TRUE(log.interrupted);
    EXPECT_EQ(log.losses.size(), 4u);
    EXPECT_EQ(signals_seen, 0);
    std::raise(signal);
    EXPECT_EQ(signals_seen, 1);
    EXPECT_FALSE(xgrad::fit(2, constant, {.progress = false}).interrupted);
  }
}

TEST(FitTest, ASignalThatIsIgnoredStaysSo) {
  for (const int signal : {SIGINT, SIGTERM, SIGHUP}) {
    const SignalHandler ignored(signal, SIG_IGN);
    const auto step = [signal](std::size_t) {
      std::raise(signal);
      return StepResult{.loss = 1};
    };
    const xgrad::TrainingLog log = xgrad::fit(3, step, {.progress = false});
    EXPECT_FALSE(log.interrupted) << signal;
    EXPECT_EQ(log.losses.size(), 3u);
  }
}

TEST(FitTest, ASecondInterruptEndsAProcessWhoseStepIsStuck) {
  const auto stuck = [](std::size_t) -> StepResult {
    for (;;) std::raise(SIGINT);
  };
  const auto train = [&] {
    std::signal(SIGINT, SIG_DFL);
    alarm(60);
    xgrad::fit(1, stuck, {.progress = false});
  };
  EXPECT_EXIT(train(), testing::KilledBySignal(SIGINT), "");
}

TEST(FitTest, SystemsMaySendTheOtherSignalsTwice) {
  const auto train = [] {
    std::signal(SIGTERM, SIG_DFL);
    std::signal(SIGHUP, SIG_DFL);
    const auto step = [](std::size_t) {
      for (const int signal : {SIGTERM, SIGTERM, SIGHUP, SIGHUP}) std::raise(signal);
      return StepResult{.loss = 1};
    };
    ::_exit(xgrad::fit(2, step, {.progress = false}).interrupted ? 0 : 1);  // without looking for leaks
  };
  EXPECT_EXIT(train(), testing::ExitedWithCode(0), "");
}

TEST(FitTest, NeedsAStep) {
  EXPECT_EQ(xgrad_tests::message_of<xgrad::ValueError>([] { xgrad::fit(1, {}, {.progress = false}); }),
            "fit: step must be a function, got none");
}

TEST(FitTest, AnErrorOfAStepPutsTheHandlersBack) {
  signals_seen = 0;
  const SignalHandler mine(SIGINT, see_signal);
  const auto step = [](std::size_t i) {
    return i < 2 ? StepResult{.loss = 1} : throw std::runtime_error("no data");
  };
  EXPECT_EQ(xgrad_tests::message_of([&] { xgrad::fit(5, step, {.progress = false}); }), "no data");
  std::raise(SIGINT);
  EXPECT_EQ(signals_seen, 1);
}

TEST(FitTest, RunsThatOverlapPutTheHandlersBack) {
  signals_seen = 0;
  const SignalHandler mine(SIGINT, see_signal);
  std::optional<xgrad::detail::InterruptGuard> first(false), second(false);
  first.reset();
  std::raise(SIGINT);
  EXPECT_EQ(signals_seen, 0) << "the other run is not over";
  EXPECT_TRUE(second->interrupted());
  second.reset();
  std::raise(SIGINT);
  EXPECT_EQ(signals_seen, 1);
}

TEST(FitTest, StopsAtALossThatIsNoNumber) {
  const double nan = std::nan(""), infinity = std::numeric_limits<double>::infinity();
  const auto message = [](const StepResult& bad) {
    std::vector<std::size_t> saved;
    const auto step = [&](std::size_t i) { return i < 12 ? StepResult{.loss = 1} : bad; };
    const auto save = [&](std::size_t done) { saved.push_back(done); };
    const std::string text = xgrad_tests::message_of(
        [&] { xgrad::fit(20, step, {.progress = false, .save = save, .save_every = 5}); });
    EXPECT_EQ(saved, (std::vector<std::size_t>{5, 10}));
    return text;
  };
  EXPECT_EQ(message({.loss = nan}),
            "fit: the loss of step 12 is nan; DetectAnomaly, in programs --detect-anomaly, names the op that "
            "makes a nan");
  EXPECT_EQ(message({.loss = 1, .grad_norm = infinity}),
            "fit: the gradient norm of step 12 is inf; DetectAnomaly, in programs --detect-anomaly, names "
            "the op that makes a nan");
}

std::string stderr_of_fit(std::size_t steps) {
  testing::internal::CaptureStderr();
  xgrad::fit(steps, [](std::size_t) { return StepResult{.loss = 0.5}; });
  return testing::internal::GetCapturedStderr();
}

TEST(FitTest, PrintsAboutTenPlainLinesWithoutATerminal) {
  const std::string text = stderr_of_fit(1234);
  const auto lines = std::count(text.begin(), text.end(), '\n');
  EXPECT_EQ(lines, 10);
  EXPECT_EQ(text.find_first_of("\r\x1b"), std::string::npos);
  EXPECT_EQ(text.rfind("step 124/1234  loss 0.5  ", 0), 0u) << text;
  EXPECT_NE(text.find("step 1234/1234  loss 0.5  "), std::string::npos) << text;
  EXPECT_EQ(stderr_of_fit(0), "");
}

TEST(FitTest, ShowsTokensPerSecondWhereTheyAreKnown) {
  testing::internal::CaptureStderr();
  xgrad::fit(3, [](std::size_t) { return StepResult{.loss = 0.25, .tokens = 1000000000000}; });
  const std::string text = testing::internal::GetCapturedStderr();
  EXPECT_EQ(text.rfind("step 1/3  loss 0.25  ", 0), 0u) << text;
  EXPECT_NE(text.find(" tokens/s  "), std::string::npos) << text;
  const std::string before_rate = "loss 0.25  ";
  EXPECT_GT(std::stod(text.substr(text.find(before_rate) + before_rate.size())), 1e9) << text;
  EXPECT_EQ(text.find(" steps/s"), std::string::npos) << text;
  EXPECT_NE(text.find(" 0 s left\n"), std::string::npos) << text;
}

/// The line that is shown after the first step of a resumed run, which takes a millisecond at least.
std::string shown_after(std::size_t first_step, std::size_t steps) {
  const auto slow = [](std::size_t) {
    const auto start = std::chrono::steady_clock::now();
    while (std::chrono::steady_clock::now() - start < std::chrono::milliseconds(1)) continue;
    return StepResult{.loss = 0.5};
  };
  testing::internal::CaptureStderr();
  xgrad::fit(steps, slow,
             {.first_step = first_step, .evaluate = [](std::size_t) { return false; }, .evaluate_every = 1});
  return testing::internal::GetCapturedStderr();
}

TEST(FitTest, TheTimeLeftIsThatOfTheStepsLeft) {
  std::smatch found;
  const std::string minutes = shown_after(19999, 200000);
  ASSERT_TRUE(std::regex_search(
      minutes, found,
      std::regex(
          R"(^step 20000/200000  loss 0.5  ([0-9.]+) steps/s  (\d+):[0-5]\d(:[0-5]\d h| min) left\n$)")))
      << minutes;
  EXPECT_LE(std::stod(found[1]), 1000) << "a step takes a millisecond";
  EXPECT_GE(std::stoul(found[2]), found[3] == " min" ? 3u : 1u) << "180000 steps";
  const std::string hours = shown_after(1999999, 20000000);
  ASSERT_TRUE(std::regex_search(hours, found, std::regex(R"(  (\d+):[0-5]\d:[0-5]\d h left\n$)"))) << hours;
  EXPECT_GE(std::stoul(found[1]), 5u) << "18000000 steps";
}

TEST(FitTest, TheTimeLeftIsThatOfTheEvaluationsLeft) {
  const xgrad::detail::RunTimes times{.steps = 10, .evaluations = 2, .training = 5, .evaluating = 60};
  EXPECT_EQ(times.left(20, 3), 100);
  EXPECT_EQ(times.left(0, 1), 30);
  EXPECT_EQ(xgrad::detail::RunTimes{}.left(20, 3), 0);
}

TEST(FitTest, EvaluatesAndThenSaves) {
  std::vector<std::string> calls;
  const auto note = [&calls](const char* what) {
    return [&calls, what](std::size_t done) {
      calls.push_back(what + std::to_string(done));
      return done < 8;
    };
  };
  xgrad::FitOptions options{.progress = false,
                            .evaluate = note("evaluate "),
                            .evaluate_every = 4,
                            .save = note("save "),
                            .save_every = 3};
  const xgrad::TrainingLog log = xgrad::fit(20, constant, options);
  EXPECT_EQ(calls, (std::vector<std::string>{"save 3", "evaluate 4", "save 6", "evaluate 8", "save 8"}));
  EXPECT_TRUE(log.stopped);
  EXPECT_EQ(log.steps, 8u);

  calls.clear();
  options.first_step = 4;
  std::vector<std::size_t> steps;
  const auto step = [&steps](std::size_t i) {
    steps.push_back(i);
    return StepResult{.loss = 1};
  };
  EXPECT_EQ(xgrad::fit(7, step, options).steps, 7u);
  EXPECT_EQ(steps, (std::vector<std::size_t>{4, 5, 6}));
  EXPECT_EQ(calls, (std::vector<std::string>{"save 6", "save 7"}));

  calls.clear();
  options.first_step = 7;
  EXPECT_EQ(xgrad::fit(7, step, options).steps, 7u);
  EXPECT_EQ(calls, std::vector<std::string>()) << "no steps are left, so nothing has changed";
}

TEST(FitTest, SavesWhenASignalEndsIt) {
  const SignalHandler handler(SIGINT, SIG_DFL);
  std::vector<std::size_t> saved;
  const auto step = [](std::size_t i) {
    if (i == 3) std::raise(SIGINT);
    return StepResult{.loss = 1};
  };
  xgrad::fit(100, step, {.progress = false, .save = [&](std::size_t done) { saved.push_back(done); }});
  EXPECT_EQ(saved, std::vector<std::size_t>{4});
}

TEST(FitTest, IsLookedAtMoreOftenInTheBeginning) {
  std::vector<std::size_t> seen, followed;
  const auto run = [&](std::size_t steps, std::size_t first) {
    seen.clear();
    followed.clear();
    xgrad::fit(steps, constant,
               {.progress = false,
                .first_step = first,
                .observe = [&](std::size_t done) { seen.push_back(done); },
                .observe_step = [&](std::size_t done) { followed.push_back(done); }});
  };
  run(130, 0);
  EXPECT_EQ(seen, (std::vector<std::size_t>{0, 1, 2, 5, 10, 20, 50, 100, 130}));
  EXPECT_EQ(followed, (std::vector<std::size_t>{0, 1, 2, 5, 10, 20, 50, 100}));
  run(12, 7);
  EXPECT_EQ(seen, (std::vector<std::size_t>{7, 10, 12}));
  run(3, 3);
  EXPECT_TRUE(seen.empty());
}

TEST(FitTest, WhoLooksDrawsOtherRandomNumbers) {
  const auto numbers = [](const std::function<void(std::size_t)>& observe) {
    xgrad::manual_seed(3);
    std::vector<double> drawn;
    const auto step = [&](std::size_t) {
      drawn.push_back(xgrad::uniform<double>({1})(0));
      return StepResult{.loss = 1};
    };
    xgrad::fit(4, step, {.progress = false, .observe = observe, .observe_step = observe});
    return drawn;
  };
  EXPECT_EQ(numbers([](std::size_t) { xgrad::uniform<double>({5}); }), numbers({}));
}

TEST(FitTest, EvaluatesInNoStepIsAnError) {
  const auto step = [](std::size_t) { return StepResult{.loss = 1}; };
  EXPECT_EQ(xgrad_tests::message_of([&] {
              xgrad::fit(
                  1, step,
                  {.progress = false, .evaluate = [](std::size_t) { return true; }, .evaluate_every = 0});
            }),
            "fit: evaluate_every must be at least 1, got 0: evaluate would not be called");
}

// The metrics file

class MetricsFileTest : public testing::Test {
 protected:
  void write(const std::string& text) const { folder_.write("metrics", text); }
  std::string read() const { return xgrad_tests::read_bytes(path_); }
  void train(std::size_t steps, std::size_t first = 0) const {
    const auto step = [](std::size_t i) {
      return StepResult{.loss = 1 / static_cast<double>(i + 1), .lr = 0.1, .grad_norm = 2, .tokens = 7};
    };
    xgrad::fit(steps, step,
               {.progress = false,
                .first_step = first,
                .metrics = path_,
                .about = {{"--seed", "3"}, {"--data", "a \"b\\\n"}},
                .seed = 3});
  }
  /// The lines after the first one, which is about the run.
  std::vector<nlohmann::json> lines() const {
    std::istringstream text(read());
    std::string line;
    if (!std::getline(text, line)) return {};
    const auto run = nlohmann::json::parse(line).at("run");
    EXPECT_TRUE(run.at("versions").contains("xgrad"));
    std::vector<nlohmann::json> result;
    while (std::getline(text, line)) result.push_back(nlohmann::json::parse(line));
    return result;
  }
  /// The steps that the file has lines of.
  std::vector<std::size_t> steps() const {
    std::vector<std::size_t> result;
    for (const nlohmann::json& line : lines()) result.push_back(line.at("step").get<std::size_t>());
    return result;
  }

  const xgrad_tests::TemporaryFolder folder_;
  const std::string path_ = folder_.write("metrics", "");
};

TEST_F(MetricsFileTest, HasALineForEachStep) {
  train(3);
  ASSERT_EQ(lines().size(), 3u);
  for (std::size_t i = 0; i < 3; ++i) {
    const nlohmann::json json = lines()[i];
    EXPECT_EQ(json.at("step"), i);
    EXPECT_EQ(json.at("loss"), 1 / static_cast<double>(i + 1));
    EXPECT_EQ(json.at("lr"), 0.1);
    EXPECT_EQ(json.at("grad_norm"), 2);
    EXPECT_EQ(json.at("tokens"), 7);
    EXPECT_GE(json.at("seconds"), 0);
  }
}

TEST_F(MetricsFileTest, BeginsWithWhatRan) {
  train(2);
  const auto run = nlohmann::json::parse(read().substr(0, read().find('\n'))).at("run");
  EXPECT_EQ(run.at("seed"), "3");
  EXPECT_EQ(run.at("options"), (nlohmann::json{{"--seed", "3"}, {"--data", "a \"b\\\n"}}));
  EXPECT_NE(run.at("versions").at("xgrad").get<std::string>().find('.'), std::string::npos);
}

TEST_F(MetricsFileTest, GoesOnWhereTheRunDoes) {
  train(6);
  train(5, 3);
  EXPECT_EQ(steps(), (std::vector<std::size_t>{0, 1, 2, 3, 4}));
  write(read() + "{\"step\": 5, \"lo");
  train(7, 5);
  EXPECT_EQ(steps(), (std::vector<std::size_t>{0, 1, 2, 3, 4, 5, 6}));
  std::filesystem::remove(path_);
  train(7, 5);
  EXPECT_EQ(steps(), (std::vector<std::size_t>{5, 6}));
}

TEST_F(MetricsFileTest, HasOnlyWhatAStepReturns) {
  xgrad::fit(1, constant, {.progress = false, .metrics = path_});
  ASSERT_EQ(lines().size(), 1u);
  const nlohmann::json line = lines()[0];
  EXPECT_EQ(line.size(), 3u) << line;
  for (const char* key : {"step", "loss", "seconds"}) EXPECT_TRUE(line.contains(key)) << key;
}

TEST_F(MetricsFileTest, HasTheLinesOfAllStepsThatAreSaved) {
  const auto step = [this](std::size_t i) {
    if (i % 4 == 0) {
      EXPECT_EQ(steps().size(), i) << "lines of the steps that a checkpoint has";
    }
    return StepResult{.loss = 1};
  };
  xgrad::fit(10, step, {.progress = false, .metrics = path_, .save = [](std::size_t) {}, .save_every = 4});
  EXPECT_EQ(steps().size(), 10u);
}

TEST_F(MetricsFileTest, HasTheLinesBeforeAnException) {
  const auto step = [](std::size_t i) {
    if (i == 3) throw std::runtime_error("no more");
    return StepResult{.loss = 1};
  };
  EXPECT_EQ(xgrad_tests::message_of([&] { xgrad::fit(9, step, {.progress = false, .metrics = path_}); }),
            "no more");
  EXPECT_EQ(steps(), (std::vector<std::size_t>{0, 1, 2}));
}

TEST_F(MetricsFileTest, WhatFollowsALineThatIsNoneIsCutOff) {
  train(3);
  write(read() + "{\"step\": 3, \"loss\": 1}\n{\"step\": 4; 1}\n{\"step\": 4, \"loss\": 1}\n");
  train(7, 6);
  EXPECT_EQ(steps(), (std::vector<std::size_t>{0, 1, 2, 3, 6}));
}

TEST_F(MetricsFileTest, ALossThatIsNoNumberIsNull) {
  const auto step = [](std::size_t) { return StepResult{.loss = std::nan("")}; };
  EXPECT_NE(xgrad_tests::message_of([&] { xgrad::fit(1, step, {.progress = false, .metrics = path_}); }),
            "no exception");
  ASSERT_EQ(lines().size(), 1u);
  EXPECT_TRUE(lines()[0].at("loss").is_null());
}

TEST_F(MetricsFileTest, AnotherFileIsNotTouchedByANewRun) {
  train(2);
  const std::string earlier = read();
  for (const std::string& text : {earlier, std::string("my notes\n")}) {
    write(text);
    EXPECT_EQ(
        xgrad_tests::message_of([&] { train(3); }),
        "fit: " + path_ +
            ": cannot be written: it has content, perhaps of an earlier run; remove it, or name another "
            "file");
    EXPECT_EQ(read(), text);
  }
}

TEST_F(MetricsFileTest, AnotherFileIsNotTouchedByAResumedRun) {
  for (const char* text : {"my notes\n", "my notes", "{\"step\": one}\n", "{\"step\": 1, \"loss\": \n"}) {
    write(text);
    EXPECT_EQ(xgrad_tests::message_of([&] { train(5, 3); }),
              "fit: " + path_ + ": cannot be written: it is not a training run's metrics");
    EXPECT_EQ(read(), text);
  }
}

TEST_F(MetricsFileTest, AFileThatCannotBeWrittenIsAnErrorBeforeTheTraining) {
  bool trained = false;
  const auto step = [&](std::size_t) {
    trained = true;
    return StepResult{};
  };
  const std::string nowhere = path_ + "/metrics";
  EXPECT_EQ(xgrad_tests::message_of([&] { xgrad::fit(1, step, {.progress = false, .metrics = nowhere}); }),
            "fit: " + nowhere + ": cannot be written: Not a directory");
  EXPECT_FALSE(trained);
  EXPECT_EQ(
      xgrad_tests::message_of([&] { xgrad::fit(1, step, {.progress = false, .metrics = "/dev/full"}); }),
      "fit: /dev/full: cannot be written: No space left on device");
}

TEST_F(MetricsFileTest, AFullDiskEndsTheRunAfterSaving) {
  std::vector<std::size_t> saved;
  const auto save = [&](std::size_t done) { saved.push_back(done); };
  const auto message = [&](std::size_t steps) {
    saved.clear();
    return xgrad_tests::message_of([&] {
      xgrad::fit(steps, constant, {.progress = false, .metrics = "/dev/full", .save = save, .save_every = 0});
    });
  };
  const std::string full = "fit: /dev/full: cannot be written: No space left on device";
  EXPECT_EQ(message(3), full);
  EXPECT_EQ(saved, std::vector<std::size_t>{3});
  EXPECT_EQ(message(100000), full);
  ASSERT_EQ(saved.size(), 1u);
  EXPECT_LT(saved[0], 10000u) << "it ends when a write fails, not at the last step";
}

TEST_F(MetricsFileTest, TwoRunsDoNotShareOne) {
  train(2);
  const std::string before = read();
  const auto step = [&](std::size_t) {
    for (const std::size_t first : {0, 1}) {
      EXPECT_EQ(xgrad_tests::message_of([&] { train(2, first); }),
                "fit: " + path_ + ": cannot be written: another run writes it");
    }
    return StepResult{};
  };
  xgrad::fit(3, step, {.progress = false, .first_step = 2, .metrics = path_});
  EXPECT_EQ(read().substr(0, before.size()), before);
  EXPECT_EQ(steps(), (std::vector<std::size_t>{0, 1, 2}));
}

TEST_F(MetricsFileTest, ADeviceHasNoLinesToKeep) {
  const xgrad::FitOptions options{.progress = false, .first_step = 3, .metrics = "/dev/null"};
  EXPECT_EQ(xgrad::fit(5, constant, options).losses.size(), 2u);
}

// Early stopping

TEST(EarlyStoppingTest, StopsAfterItsPatience) {
  xgrad::EarlyStopping stopping({.patience = 2, .min_delta = 0.1});
  EXPECT_TRUE(stopping.update(0.5));
  EXPECT_FALSE(stopping.update(0.6)) << "no more than min_delta";
  EXPECT_FALSE(stopping.should_stop());
  EXPECT_TRUE(stopping.update(0.7));
  EXPECT_FALSE(stopping.update(std::nan("")));
  const xgrad::TrainingState state = stopping.state_dict();
  EXPECT_FALSE(stopping.should_stop());
  EXPECT_FALSE(stopping.update(0.2));
  EXPECT_TRUE(stopping.should_stop());
  EXPECT_EQ(stopping.best(), 0.7);

  xgrad::EarlyStopping resumed({.patience = 2});
  resumed.load_state_dict(state);
  EXPECT_EQ(resumed.best(), 0.7);
  EXPECT_FALSE(resumed.should_stop());
  EXPECT_FALSE(resumed.update(0.7));
  EXPECT_TRUE(resumed.should_stop());
}

TEST(EarlyStoppingTest, OfALossLowerIsBetter) {
  xgrad::EarlyStopping stopping({.patience = 2, .min_delta = 0.1, .better = xgrad::Better::lower});
  EXPECT_EQ(stopping.best(), std::numeric_limits<double>::infinity());
  EXPECT_TRUE(stopping.update(0.7));
  EXPECT_FALSE(stopping.update(0.65)) << "no more than min_delta";
  EXPECT_TRUE(stopping.update(0.5));
  EXPECT_FALSE(stopping.update(std::nan("")));
  EXPECT_FALSE(stopping.update(0.9));
  EXPECT_TRUE(stopping.should_stop());
  EXPECT_EQ(stopping.best(), 0.5);
}

TEST(EarlyStoppingTest, ByDefaultFiveEvaluationsMayBeNoBetter) {
  xgrad::EarlyStopping stopping;
  EXPECT_EQ(stopping.best(), -std::numeric_limits<double>::infinity());
  EXPECT_TRUE(stopping.update(-3)) << "any number is better than none";
  for (int i = 0; i < 4; ++i) EXPECT_FALSE(stopping.update(-3));
  EXPECT_FALSE(stopping.should_stop());
  EXPECT_TRUE(stopping.update(std::nextafter(-3, 0))) << "by however little";
  for (int i = 0; i < 5; ++i) {
    EXPECT_FALSE(stopping.should_stop());
    EXPECT_FALSE(stopping.update(-4));
  }
  EXPECT_TRUE(stopping.should_stop());
  EXPECT_TRUE(stopping.update(0));
  EXPECT_FALSE(stopping.should_stop());
}

TEST(EarlyStoppingTest, RefusesOptionsAndStatesThatCannotBe) {
  EXPECT_EQ(xgrad_tests::message_of([] { xgrad::EarlyStopping({.patience = 0}); }),
            "EarlyStopping: patience must be at least 1, got 0");
  EXPECT_EQ(xgrad_tests::message_of([] { xgrad::EarlyStopping({.min_delta = -1}); }),
            "EarlyStopping: min_delta must be finite and at least 0, got -1");
  EXPECT_EQ(xgrad_tests::message_of(
                [] { xgrad::EarlyStopping({.min_delta = std::numeric_limits<double>::infinity()}); }),
            "EarlyStopping: min_delta must be finite and at least 0, got inf");
  xgrad::EarlyStopping stopping;
  EXPECT_EQ(xgrad_tests::message_of([&] {
              stopping.load_state_dict({.numbers = {{"best", 1}}});
            }),
            "load_state_dict: 'since_best' is missing");
  EXPECT_EQ(xgrad_tests::message_of([&] {
              stopping.load_state_dict({.numbers = {{"best", std::nan("")}, {"since_best", 1}}});
            }),
            "load_state_dict: EarlyStopping: 'best' must be a number, got nan");
  EXPECT_TRUE(xgrad_tests::message_of([&] {
                stopping.load_state_dict({.numbers = {{"best", 1}, {"since_best", 0.5}}});
              }).starts_with("load_state_dict: 'since_best' must be a whole number"));
}

// Progress on a terminal

/// While it lives, stderr is a terminal.
class Terminal {
 public:
  Terminal() : main_(posix_openpt(O_RDWR | O_NOCTTY)), stderr_(dup(STDERR_FILENO)) {
    if (main_ < 0 || grantpt(main_) != 0 || unlockpt(main_) != 0) return;
    other_ = open(ptsname(main_), O_RDWR | O_NOCTTY);
    dup2(other_, STDERR_FILENO);
  }
  ~Terminal() {
    dup2(stderr_, STDERR_FILENO);
    for (const int file : {main_, other_, stderr_}) close(file);
  }
  Terminal(const Terminal&) = delete;
  Terminal& operator=(const Terminal&) = delete;

  bool works() const { return other_ >= 0; }
  void set_columns(unsigned short columns) const {
    const winsize size{.ws_row = 24, .ws_col = columns, .ws_xpixel = 0, .ws_ypixel = 0};
    ioctl(main_, TIOCSWINSZ, &size);
  }

  /// What was shown up to the first end of a line.
  std::string shown() const {
    std::string text;
    char next;
    while (read(main_, &next, 1) == 1) {
      text += next;
      if (next == '\n') break;
    }
    return text;
  }

 private:
  int main_, stderr_, other_ = -1;
};

TEST(FitTest, RedrawsABarOnATerminal) {
  const Terminal terminal;
  if (!terminal.works()) GTEST_SKIP() << "no terminals here";
  xgrad::fit(100000, [](std::size_t) { return StepResult{.loss = 0.5}; });
  const std::string text = terminal.shown();
  // Each drawing has a bar and an escape.
  EXPECT_LE(std::count(text.begin(), text.end(), '['), 2 * 12) << text;
  EXPECT_NE(text.find("[====================] step 100000/100000  loss 0.5  "), std::string::npos) << text;
  EXPECT_EQ(text.substr(text.size() - 2), "\r\n");
}

/// What is drawn after a step of 40, on a terminal of this width; 0: it does not know its width.
std::string drawn(const Terminal& terminal, unsigned short columns, std::size_t done) {
  terminal.set_columns(columns);
  xgrad::fit(40, [](std::size_t) { return StepResult{.loss = 0.5}; },
             {.first_step = done - 1, .evaluate = [](std::size_t) { return false; }, .evaluate_every = 1});
  return terminal.shown();
}

TEST(FitTest, TheBarShowsTheShareThatIsDoneWhereItFits) {
  const Terminal terminal;
  if (!terminal.works()) GTEST_SKIP() << "no terminals here";
  EXPECT_EQ(drawn(terminal, 20, 31), "\rstep 31/40  loss 0.\x1b[K\r\n") << "the last column stays free";
  for (const unsigned short columns : {0, 100}) {
    EXPECT_TRUE(drawn(terminal, columns, 1).starts_with("\r[                    ] step 1/40  "));
    EXPECT_TRUE(drawn(terminal, columns, 31).starts_with("\r[===============     ] step 31/40  "));
    EXPECT_TRUE(drawn(terminal, columns, 40).starts_with("\r[====================] step 40/40  "));
  }
}

}  // namespace fit_test
