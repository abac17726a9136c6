#pragma once

// The training itself, as all training programs do it: checkpoints, resuming, reports, several ranks.

#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <functional>
#include <optional>
#include <span>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include <nlohmann/json.hpp>
#include <xgrad/files.hpp>
#include <xgrad/xgrad.hpp>

#include "program.hpp"
#include "run_report.hpp"
#include "training_options.hpp"
#include "warmup_and_cosine.hpp"
#include "world.hpp"

namespace apps {

/// The words with blanks between.
inline std::string joined(const std::vector<std::string>& words) {
  std::string text;
  for (const std::string& word : words) text += (text.empty() ? "" : " ") + word;
  return text;
}

/// How the training ended.
inline const char* outcome(const xgrad::TrainingLog& log) {
  return log.interrupted ? "interrupted" : log.stopped ? "stopped" : "trained";
}

/// Calls f(part) for parts of `all`, as many as a batch has shards. Ranks share them: what is computed of a
/// part does not depend on how many ranks there are.
template <class Element, class F>
void for_each_part(const RunOptions& options, const std::vector<Element>& all, const F& f) {
  const std::size_t parts = std::min(options.shard_count(), all.size());
  const std::size_t rank = options.ranks != nullptr ? options.ranks->rank() : 0;
  const std::size_t ranks = options.ranks != nullptr ? options.ranks->size() : 1;
  const auto mine = xgrad::detail::part(parts, rank, ranks);
  for (std::size_t i = mine.begin; i < mine.end; ++i) {
    const auto chosen = xgrad::detail::part(all.size(), i, parts);
    f(std::span(all).subspan(chosen.begin, chosen.size()));
  }
}

/// What all ranks have counted.
inline std::vector<std::size_t> sum_of(xgrad::Communicator* ranks, const std::vector<std::size_t>& counts) {
  if (ranks == nullptr) return counts;
  const std::vector<std::uint64_t> sums = all_sum(*ranks, {counts.begin(), counts.end()});
  return {sums.begin(), sums.end()};
}

/// The checksum of what came before, and of these words.
inline std::uint64_t checksum_of(std::span<const std::string> words, std::uint64_t before) {
  for (const std::string& word : words) {
    before = xgrad::detail::checksum(std::as_bytes(std::span(word)), before);
    before = xgrad::detail::checksum(std::as_bytes(std::span("\n", 1)), before);
  }
  return before;
}

/// What a training does with gradients.
struct TrainingRecipe {
  std::vector<xgrad::ParameterGroup<float, xgrad::AdamWOptions>> groups;
  /// Makes the scheduler of the learning rate.
  std::function<xgrad::LRScheduler<float>(xgrad::Optimizer<float>&)> schedule;
};

/// Training with AdamW, clipped gradients, and with what the options ask for: checkpoints, resuming, a log of
/// each step, keeping the best weights.
class TrainingRun {
 public:
  /// `config` has what must be the same in a resumed run, besides the options.
  TrainingRun(const RunOptions& options, const xgrad::Module<float>& model, const TrainingRecipe& recipe,
              xgrad::Metadata config = {})
      : options_(options),
        model_(model),
        optimizer_(recipe.groups),
        sharded_(optimizer_.parameters(),
                 {.shards = options.shard_count(), .seed = options.seed, .ranks = options.ranks}),
        scheduler_(recipe.schedule(optimizer_)),
        config_(std::move(config)) {
    for (const auto& [name, number] : {std::pair{"--seed", static_cast<std::size_t>(options.seed)},
                                       {"--steps", options.steps},
                                       {"--batch", options.batch},
                                       {"--shards", sharded_.shards()}}) {
      config_[name] = std::to_string(number);
    }
    config_["--lr"] = xgrad::detail::number_text(options.lr);
    if (options.precision != "highest") {
      config_["--precision"] = options.precision;
      if (options.force_precision) config_["--force-precision"] = "true";
    }
    keep("scheduler", scheduler_);
  }

  /// With a learning rate that rises linearly and then falls along half a cosine wave to 0.
  TrainingRun(const TrainingOptions& options, const xgrad::Module<float>& model, std::size_t warmup,
              xgrad::Metadata config = {})
      : TrainingRun(options, model, recipe_of(options, model, warmup),
                    with_sizes(options, std::move(config))) {}

  TrainingRun(const TrainingRun&) = delete;
  TrainingRun& operator=(const TrainingRun&) = delete;

  /// Adds something to the checkpoints.
  void keep(const std::string& name, xgrad::TrainingPart part) { parts_.emplace(name, std::move(part)); }

  /// Computes a score of the model after every so many steps, keeps the weights of the best one, and stops
  /// when it no longer improves.
  void evaluate(std::size_t every, std::size_t patience, std::function<double()> compute) {
    stopping_ = xgrad::EarlyStopping({.patience = patience});
    evaluate_every_ = every;
    evaluate_ = [this, compute = std::move(compute)](std::size_t done) {
      const double score = compute();
      if (stopping_.update(score)) best_ = model_.state_dict();
      if (options_.leads())
        std::fprintf(stderr, "step %zu: score %.4f, best %.4f\n", done, score, stopping_.best());
      return !stopping_.should_stop();
    };
    config_["--patience"] = std::to_string(patience);
    keep("stopping", stopping_);
    keep("best", best_);
  }

  /// Calls show(steps done) after every so many steps.
  void watch(std::size_t every, std::function<void(std::size_t)> show) {
    evaluate_every_ = every;
    evaluate_ = [show = std::move(show)](std::size_t done) {
      show(done);
      return true;
    };
  }

  /// Shows an example in the report, if one is asked for: loss() computes its loss, and show() adds more at a
  /// step, such as predictions.
  void show(xgrad::ReportExample example, std::function<xgrad::Variable<float>()> loss,
            std::function<void(xgrad::ReportStep&)> show = {}) {
    report_.show(std::move(example), std::move(loss), std::move(show));
  }

  /// Makes the optimizer's step for a batch, with clipped gradients, and the scheduler's; shard() gives the
  /// loss of some of its examples. Call it in each step.
  xgrad::StepResult update(const std::vector<std::size_t>& examples,
                           const xgrad::ShardedStep<float>::Shard& shard) {
    const xgrad::BatchLoss loss = sharded_.backward(step_, examples, shard);
    const double norm = clip_grad_norm(optimizer_.parameters(), 1.0);
    optimizer_.step();
    const double lr = optimizer_.lr();
    scheduler_.step();
    return {.loss = loss.mean(), .lr = lr, .grad_norm = norm, .tokens = loss.tokens};
  }

  /// Calls step(), which has to call update(), for all steps that are left; at the end the model has the best
  /// weights.
  xgrad::TrainingLog fit(const std::function<xgrad::StepResult()>& step) {
    std::optional<xgrad::FileLock> lock;
    if (!options_.checkpoint.empty() && options_.leads()) lock.emplace(options_.checkpoint);
    xgrad::FitOptions how{.metrics = options_.log, .ranks = options_.ranks};
    if (options_.ranks != nullptr) check_agreement(*options_.ranks, agreement());
    if (options_.resume) {
      how.first_step = load_checkpoint(options_.checkpoint, parts_, config_, options_.ranks);
      if (options_.leads()) std::fprintf(stderr, "resumed after step %zu\n", how.first_step);
      report_.resumed_after(how.first_step);
    }
    if (!options_.checkpoint.empty()) {
      how.save = [this](std::size_t done) { save_checkpoint(parts_, options_.checkpoint, done, config_); };
    }
    how.about = config_;
    how.seed = options_.seed;
    if (report_.is_asked_for()) {
      how.observe = [this](std::size_t done) { report_.observe(done); };
      how.observe_step = [this](std::size_t done) { report_.observe_step(done); };
    }
    how.evaluate = evaluate_;
    how.evaluate_every = evaluate_every_;
    std::optional<xgrad::DetectAnomaly> detect;
    if (options_.detect_anomaly) detect.emplace();
    const auto numbered_step = [&](std::size_t number) {
      step_ = number;
      const xgrad::StepResult result = step();
      report_.add(number, result);
      return result;
    };
    xgrad::TrainingLog log;
    try {
      log = xgrad::fit(options_.steps, numbered_step, how);
    } catch (const std::exception& error) {
      report_.note(std::string("The run ended with an error: ") + error.what());
      report_.write(config_, std::nullopt);
      throw;
    }
    if (log.interrupted && !options_.checkpoint.empty() && options_.leads()) {
      std::fprintf(stderr, "interrupted after step %zu; the same command with --resume goes on from there\n",
                   log.steps);
    }
    if (options_.ranks != nullptr && options_.leads())
      std::fprintf(stderr, "%s\n", summary(sharded_.rank_times()).c_str());
    if (!best_.empty()) model_.load_state_dict(best_);
    report_.profile();
    report_is_lost_ = !report_.write(config_, log.seconds);
    return log;
  }

  /// All ranks must have the same words to train on.
  void compare_words(const std::vector<std::string>& words) { words_ = checksum_of(words, words_); }

  /// The step that fit() makes, from 0.
  std::size_t step() const { return step_; }

  double best_score() const { return stopping_.best(); }

  /// The program's: 1 if the report could not be written.
  int exit_code() const { return report_is_lost_ ? 1 : 0; }

  /// What all programs write into their metrics file.
  nlohmann::json metrics(const xgrad::TrainingLog& log) const {
    nlohmann::json all = {{"steps", log.steps},
                          {"seconds", log.seconds},
                          {"seed", options_.seed},
                          {"interrupted", log.interrupted},
                          {"loss", log.losses}};
    if (options_.ranks == nullptr) return all;
    for (const xgrad::RankTimes& times : sharded_.rank_times()) {
      all["ranks"].push_back(
          {{"computing", times.computing}, {"waiting", times.waiting}, {"overlapping", times.overlapping}});
    }
    return all;
  }

 private:
  xgrad::Agreement agreement() const {
    xgrad::Agreement all = config_;
    all["the checksum of the training data"] = std::to_string(words_);
    return all;
  }

  static TrainingRecipe recipe_of(const RunOptions& options, const xgrad::Module<float>& model,
                                  std::size_t warmup) {
    return {.groups = {{model.parameters(), {.lr = options.lr}}},
            .schedule = [steps = options.steps, warmup](xgrad::Optimizer<float>& optimizer) {
              return warmup_and_cosine(optimizer, steps, warmup);
            }};
  }

  static xgrad::Metadata with_sizes(const EncoderSizes& sizes, xgrad::Metadata config) {
    for (const auto& [name, number] : {std::pair{"--d-model", sizes.d_model},
                                       {"--heads", sizes.heads},
                                       {"--d-ff", sizes.d_ff},
                                       {"--layers", sizes.layers}}) {
      config[name] = std::to_string(number);
    }
    return config;
  }

  const RunOptions options_;
  xgrad::Module<float> model_;
  xgrad::AdamW<float> optimizer_;
  xgrad::ShardedStep<float> sharded_;
  xgrad::LRScheduler<float> scheduler_;
  xgrad::Metadata config_;
  xgrad::TrainingParts parts_{{"model", model_}, {"optimizer", optimizer_}};
  std::size_t step_ = 0;
  std::uint64_t words_ = 0;  // their checksum
  std::size_t evaluate_every_ = 1;
  std::function<bool(std::size_t)> evaluate_;
  xgrad::EarlyStopping stopping_;
  xgrad::StateDict<float> best_;
  RunReport report_{options_, model_};
  bool report_is_lost_ = false;
};

/// Runs the body of a training program on all ranks that mpirun has started, of which rank 0 prints and
/// writes its files: body(options), where the options of the others name no file but what is read.
template <class Options, class Body>
int run_training(const char* name, Options options, Body&& body) {
  return run_program(name, [&] {
    World world;
    options.program = name;
    xgrad::set_float32_matmul_precision(options.precision);
    xgrad::force_float32_matmul_precision(options.force_precision);
    const std::string in_use = to_string(xgrad::matmul_precision_in_use());
    if (in_use != options.precision && world.rank() == 0) {
      std::fprintf(stderr, "--precision %s is %s: computing with %s\n", options.precision.c_str(),
                   options.force_precision ? "not in this build" : "no faster on this processor",
                   in_use.c_str());
    }
    if (world.size() == 1) return body(options);
    options.ranks = &world;
    if (!options.leads()) {
      for (std::string* file : {&options.metrics, &options.log, &options.report}) file->clear();
      if constexpr (requires { options.save; }) options.save.clear();
      if (std::freopen("/dev/null", "w", stdout) == nullptr)
        throw std::runtime_error("cannot open /dev/null");
    }
    try {
      return body(options);
    } catch (const std::exception& error) {
      world.abort(error.what());
      throw;
    }
  });
}

}  // namespace apps
