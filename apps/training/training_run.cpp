#include "training_run.hpp"

#include <bit>
#include <csignal>
#include <cstdio>
#include <exception>
#include <optional>

#include <xgrad/base/detail/bytes/checksum.hpp>
#include <xgrad/base/detail/text/json_tree.hpp>
#include <xgrad/files.hpp>
#include <xgrad/xgrad.hpp>

#include "warmup_and_cosine.hpp"

namespace apps {
namespace {

TrainingRecipe recipe_of(const RunOptions& options, const xgrad::Module<float>& model, std::size_t warmup) {
  return {.groups = {{model.parameters(), {.lr = options.lr}}},
          .schedule = [steps = options.steps, warmup](xgrad::Optimizer<float>& optimizer) {
            return warmup_and_cosine(optimizer, steps, warmup);
          }};
}

xgrad::Metadata with_sizes(const EncoderSizes& sizes, xgrad::Metadata config) {
  for (const auto& [name, number] : {std::pair{"--d-model", sizes.d_model},
                                     {"--heads", sizes.heads},
                                     {"--d-ff", sizes.d_ff},
                                     {"--layers", sizes.layers}}) {
    config[name] = std::to_string(number);
  }
  return config;
}

}  // namespace

std::string joined(const std::vector<std::string>& words) {
  std::string text;
  for (const std::string& word : words) text += (text.empty() ? "" : " ") + word;
  return text;
}

const char* outcome(const xgrad::TrainingLog& log) {
  return log.interrupted ? "interrupted" : log.stopped ? "stopped" : "trained";
}

std::vector<std::size_t> sum_of(Ranks* ranks, const std::vector<std::size_t>& counts) {
  if (ranks == nullptr) return counts;
  const std::vector<std::uint64_t> sums = ranks->sum({counts.begin(), counts.end()});
  return {sums.begin(), sums.end()};
}

double total_of(Ranks* ranks, const std::vector<double>& numbers) {
  std::vector<std::uint64_t> bits;
  bits.reserve(numbers.size());
  for (const double number : numbers) bits.push_back(std::bit_cast<std::uint64_t>(number));
  if (ranks != nullptr) bits = ranks->sum(bits);
  double sum = 0;
  for (const std::uint64_t number : bits) sum += std::bit_cast<double>(number);
  return sum;
}

std::uint64_t checksum_of(std::span<const std::string> words, std::uint64_t before) {
  for (const std::string& word : words) {
    before = xgrad::detail::checksum(std::as_bytes(std::span(word)), before);
    before = xgrad::detail::checksum(std::as_bytes(std::span("\n", 1)), before);
  }
  return before;
}

TrainingRun::TrainingRun(const RunOptions& options, const xgrad::Module<float>& model,
                         const TrainingRecipe& recipe, xgrad::Metadata config)
    : options_(options),
      model_(model),
      optimizer_(recipe.groups),
      scheduler_(recipe.schedule(optimizer_)),
      clip_(recipe.clip),
      config_(std::move(config)) {
  for (const auto& [name, number] : {std::pair{"--seed", static_cast<std::size_t>(options.seed)},
                                     {"--steps", options.steps},
                                     {"--batch", options.batch},
                                     {"--shards", options.shard_count()}}) {
    config_[name] = std::to_string(number);
  }
  config_["--lr"] = xgrad::detail::number_text(options.lr);
  if (options.precision != "highest") config_["--precision"] = options.precision;
  keep("scheduler", scheduler_);
  if (options.ranks != nullptr)
    options.ranks->share(optimizer_.parameters(), options.shard_count(), options.seed);
}

TrainingRun::TrainingRun(const TrainingOptions& options, const xgrad::Module<float>& model,
                         const TrainingRecipe& recipe, xgrad::Metadata config)
    : TrainingRun(static_cast<const RunOptions&>(options), model, recipe,
                  with_sizes(options, std::move(config))) {}

TrainingRun::TrainingRun(const TrainingOptions& options, const xgrad::Module<float>& model,
                         std::size_t warmup, xgrad::Metadata config)
    : TrainingRun(options, model, recipe_of(options, model, warmup), std::move(config)) {}

TrainingRun::~TrainingRun() = default;

void TrainingRun::keep(const std::string& name, xgrad::TrainingPart part) {
  parts_.emplace(name, std::move(part));
}

void TrainingRun::evaluate(std::size_t every, std::size_t patience, std::function<double()> compute,
                           std::function<void(std::size_t, double, bool)> show) {
  stopping_ = xgrad::EarlyStopping({.patience = patience});
  evaluate_every_ = every;
  evaluate_ = [this, compute = std::move(compute), show = std::move(show)](std::size_t done) {
    const double score = compute();
    const bool is_best = stopping_.update(score);
    if (is_best) best_ = model_.state_dict();
    if (show) {
      show(done, score, is_best);
    } else if (options_.leads()) {
      std::fprintf(stderr, "step %zu: score %.4f, best %.4f\n", done, score, stopping_.best());
    }
    return !stopping_.should_stop();
  };
  config_["--patience"] = std::to_string(patience);
  keep("stopping", stopping_);
  keep("best", best_);
}

void TrainingRun::watch(std::size_t every, std::function<void(std::size_t)> show) {
  evaluate_every_ = every;
  evaluate_ = [show = std::move(show)](std::size_t done) {
    show(done);
    return true;
  };
}

void TrainingRun::show(xgrad::ReportExample example, std::function<xgrad::Variable<float>()> loss,
                       std::function<void(xgrad::ReportStep&)> show) {
  report_.show(std::move(example), std::move(loss), std::move(show));
}

xgrad::BatchLoss TrainingRun::backward(const std::vector<std::size_t>& examples,
                                       const LossOfExamples& loss_of) {
  if (options_.ranks != nullptr) return options_.ranks->backward(step_, examples, loss_of);
  xgrad::Generator draws(
      xgrad::detail::key_of_shard(options_.seed, step_, 0));  // a resumed run draws the same
  const xgrad::UseGenerator use(draws);
  optimizer_.zero_grad();
  return backward_mean(loss_of(examples), optimizer_.parameters());
}

xgrad::StepResult TrainingRun::update(const std::vector<std::size_t>& examples,
                                      const LossOfExamples& loss_of) {
  const xgrad::BatchLoss loss = backward(examples, loss_of);
  const double norm = clip_grad_norm(optimizer_.parameters(), clip_);
  optimizer_.step();
  const double lr = optimizer_.lr();
  scheduler_.step();
  is_trained_ = true;
  return {.loss = loss.mean(), .lr = lr, .grad_norm = norm, .tokens = loss.tokens};
}

xgrad::TrainingLog TrainingRun::fit(const std::function<xgrad::StepResult()>& step) {
  std::optional<xgrad::FileLock> lock;
  if (!options_.checkpoint.empty() && options_.leads()) lock.emplace(options_.checkpoint);
  xgrad::FitOptions how{.metrics = options_.log};
  if (options_.ranks != nullptr) options_.ranks->compare(agreement());
  if (options_.resume) {
    how.first_step = options_.ranks != nullptr
                         ? options_.ranks->load_checkpoint(options_.checkpoint, parts_, config_)
                         : load_checkpoint(options_.checkpoint, parts_, config_);
    if (options_.leads()) std::fprintf(stderr, "resumed after step %zu\n", how.first_step);
    report_.resumed_after(how.first_step);
  }
  if (!options_.checkpoint.empty()) {
    how.save = [this](std::size_t done) {
      save_checkpoint(parts_, options_.checkpoint, done, config_, about_);
    };
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
  check_room();
  xgrad::TrainingLog log;
  try {
    log = options_.ranks != nullptr ? options_.ranks->fit(options_.steps, numbered_step, how)
                                    : xgrad::fit(options_.steps, numbered_step, how);
  } catch (const xgrad::FileError& error) {  // of the log or the checkpoint, which is not to cost the model
    if (is_trained_ && !save_path_.empty()) {
      save_anywhere();
      std::fprintf(stderr, "the model after step %zu is saved\n", step_);
    }
    report_.note(std::string("The run ended with an error: ") + error.what());
    report_.write(config_, std::nullopt);
    throw;
  } catch (const std::exception& error) {
    report_.note(std::string("The run ended with an error: ") + error.what());
    report_.write(config_, std::nullopt);
    throw;
  }
  if (log.interrupted && options_.leads()) {
    signal_code_ = 128 + (log.signal != 0 ? log.signal : SIGINT);
    std::fprintf(stderr, "interrupted after step %zu; %s\n", log.steps,
                 options_.checkpoint.empty() ? "without --checkpoint, the run cannot be continued"
                                             : "the same command with --resume continues the run");
  }
  if (!best_.empty()) model_.load_state_dict(best_);
  report_.profile();
  if (!report_.write(config_, log.seconds)) file_is_lost_ = true;
  return log;
}

void TrainingRun::save_to(const std::string& path, std::function<void(const std::string&)> save, bool again) {
  save_path_ = path;
  saves_again_ = again;
  save_ = std::move(save);
}

void TrainingRun::save(const xgrad::TrainingLog& log) {
  if (save_path_.empty()) return;
  if (save_anywhere() == save_path_ && log.interrupted && options_.leads())
    std::fprintf(stderr, "the model after step %zu is saved in %s\n", log.steps, save_path_.c_str());
}

void TrainingRun::save_so_far() {
  if (save_path_.empty()) return;
  try {
    save_(save_path_);
  } catch (const xgrad::FileError& error) {
    std::fprintf(stderr, "%s: %s; the run goes on, and saves the model at its end\n",
                 options_.program.c_str(), error.what());
  }
}

/// Returns where.
std::string TrainingRun::save_anywhere() {
  std::string path = save_or_rescue(save_path_, save_);
  if (path != save_path_) file_is_lost_ = true;
  return path;
}

/// A checkpoint has the moments of the optimizer, and the best weights where there are some.
void TrainingRun::check_room() const {
  if (!options_.leads()) return;
  const std::uint64_t weights = model_.parameter_count() * sizeof(float);
  std::vector<FileToWrite> files;
  if (!save_path_.empty()) files.push_back({save_path_, weights, saves_again_});
  if (!options_.checkpoint.empty())
    files.push_back({options_.checkpoint, weights * (evaluate_ ? 4 : 3), true});
  apps::check_room(files);
}

void TrainingRun::compare_words(const std::vector<std::string>& words) {
  words_ = checksum_of(words, words_);
}

xgrad::detail::JsonTree TrainingRun::metrics(const xgrad::TrainingLog& log) const {
  xgrad::detail::JsonTree all = {{"steps", log.steps},
                                 {"seconds", log.seconds},
                                 {"seed", options_.seed},
                                 {"interrupted", log.interrupted},
                                 {"loss", log.losses}};
  if (options_.ranks != nullptr) options_.ranks->add_times(all);
  return all;
}

xgrad::Metadata TrainingRun::agreement() const {
  xgrad::Metadata all = config_;
  all["the checksum of the training data"] = std::to_string(words_);
  return all;
}

}  // namespace apps
