#pragma once

// The training itself, as all training programs do it: checkpoints, resuming, reports, several ranks.

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include <xgrad/base/detail/arrays/range.hpp>
#include <xgrad/base/detail/text/json_tree_fwd.hpp>
#include <xgrad/files/training_checkpoint.hpp>
#include <xgrad/train/early_stopping.hpp>
#include <xgrad/train/lr_scheduler.hpp>
#include <xgrad/train/optimizers/adam.hpp>
#include <xgrad/train/trainer.hpp>

#include "ranks.hpp"
#include "run_report.hpp"
#include "training_options.hpp"

namespace apps {

/// The words with blanks between.
std::string joined(const std::vector<std::string>& words);

/// How the training ended.
const char* outcome(const xgrad::TrainingLog& log);

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
std::vector<std::size_t> sum_of(Ranks* ranks, const std::vector<std::size_t>& counts);

/// The sum of numbers, each of which one rank has and the others have as 0, in their order.
double total_of(Ranks* ranks, const std::vector<double>& numbers);

/// The sum of f(part) over the parts that ranks share. Its bits do not depend on how many ranks there are.
template <class Element, class F>
double sum_over_parts(const RunOptions& options, const std::vector<Element>& all, const F& f) {
  std::vector<double> sums(all.size());  // of each part at its first element
  for_each_part(options, all, [&](std::span<const Element> part) {
    sums[static_cast<std::size_t>(part.data() - all.data())] = f(part);
  });
  return total_of(options.ranks, sums);
}

/// The checksum of what came before, and of these words.
std::uint64_t checksum_of(std::span<const std::string> words, std::uint64_t before);

/// What a training does with gradients.
struct TrainingRecipe {
  std::vector<xgrad::ParameterGroup<float, xgrad::AdamWOptions>> groups;
  /// Makes the scheduler of the learning rate.
  std::function<xgrad::LRScheduler<float>(xgrad::Optimizer<float>&)> schedule;
  double clip = 1;  ///< the largest norm of all gradients
};

/// Training with AdamW, clipped gradients, and with what the options ask for: checkpoints, resuming, a log of
/// each step, keeping the best weights.
class TrainingRun {
 public:
  /// `config` has what must be the same in a resumed run, besides the options.
  TrainingRun(const RunOptions& options, const xgrad::Module<float>& model, const TrainingRecipe& recipe,
              xgrad::Metadata config = {});

  /// The same, and the sizes must be, too.
  TrainingRun(const TrainingOptions& options, const xgrad::Module<float>& model, const TrainingRecipe& recipe,
              xgrad::Metadata config = {});

  /// With a learning rate that rises linearly and then falls along half a cosine wave to 0.
  TrainingRun(const TrainingOptions& options, const xgrad::Module<float>& model, std::size_t warmup,
              xgrad::Metadata config = {});

  TrainingRun(const TrainingRun&) = delete;
  TrainingRun& operator=(const TrainingRun&) = delete;
  ~TrainingRun();

  /// Adds something to the checkpoints.
  void keep(const std::string& name, xgrad::TrainingPart part);

  /// Adds metadata to the checkpoints, with which their model can be built.
  void describe(xgrad::Metadata about) { about_ = std::move(about); }

  /// Computes a score of the model after every so many steps, keeps the weights of the best one, and stops
  /// when it no longer improves. Then show(steps done, score, whether it is the best) is called; without it
  /// the score is printed on stderr.
  void evaluate(std::size_t every, std::size_t patience, std::function<double()> compute,
                std::function<void(std::size_t, double, bool)> show = {});

  /// Calls show(steps done) after every so many steps.
  void watch(std::size_t every, std::function<void(std::size_t)> show);

  /// Shows an example in the report, if one is asked for: loss() computes its loss, and show() adds more at a
  /// step, such as predictions.
  void show(xgrad::ReportExample example, std::function<xgrad::Variable<float>()> loss,
            std::function<void(xgrad::ReportStep&)> show = {});

  /// Makes the optimizer's step for a batch, with clipped gradients, and the scheduler's. Call it in each
  /// step.
  xgrad::StepResult update(const std::vector<std::size_t>& examples, const LossOfExamples& loss_of);

  /// Calls step(), which has to call update(), for all steps that are left; at the end the model has the best
  /// weights.
  xgrad::TrainingLog fit(const std::function<xgrad::StepResult()>& step);

  /// All ranks must have the same words to train on.
  void compare_words(const std::vector<std::string>& words);

  /// The step that fit() makes, from 0.
  std::size_t step() const { return step_; }

  double best_score() const { return stopping_.best(); }

  /// save(path) will save the model to `path`, a file or a folder, unless that is empty; at the end, or
  /// `again` and again. To be called before fit(), which checks that there is room for it.
  void save_to(const std::string& path, std::function<void(const std::string&)> save, bool again = false);

  /// Saves the model there, and tells so on stderr if the training was interrupted. If that fails, saves it
  /// in a new folder beside that or of temporary files, tells where, and exit_code() is 1. Throws
  /// xgrad::FileError if no place takes it.
  void save(const xgrad::TrainingLog& log);

  /// Saves the best model so far, while the training goes on: a failure is only told on stderr.
  void save_so_far();

  /// The program's: as a shell's for the signal that interrupted the training, 130 for SIGINT, on the rank
  /// that prints; 1 if the report could not be written, or the model not where it was to be saved.
  int exit_code() const { return signal_code_ != 0 ? signal_code_ : file_is_lost_ ? 1 : 0; }

  /// What all programs write into their metrics file.
  xgrad::detail::JsonTree metrics(const xgrad::TrainingLog& log) const;

 private:
  xgrad::BatchLoss backward(const std::vector<std::size_t>& examples, const LossOfExamples& loss_of);
  xgrad::Metadata agreement() const;
  void check_room() const;
  std::string save_anywhere();

  const RunOptions options_;
  xgrad::Module<float> model_;
  xgrad::AdamW<float> optimizer_;
  xgrad::LRScheduler<float> scheduler_;
  double clip_;
  xgrad::Metadata config_, about_;
  xgrad::TrainingParts parts_{{"model", model_}, {"optimizer", optimizer_}};
  std::size_t step_ = 0;
  std::uint64_t words_ = 0;  // their checksum
  std::size_t evaluate_every_ = 1;
  std::function<bool(std::size_t)> evaluate_;
  xgrad::EarlyStopping stopping_;
  xgrad::StateDict<float> best_;
  RunReport report_{options_, model_};
  std::string save_path_;
  std::function<void(const std::string&)> save_;
  bool saves_again_ = false, is_trained_ = false, file_is_lost_ = false;
  int signal_code_ = 0;
};

}  // namespace apps
