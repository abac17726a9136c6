#pragma once

#include <cstddef>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "../base/detail/by_name.hpp"

namespace xgrad {

/// Result of one training step. Only the loss is required; the rest is shown and logged if present.
struct StepResult {
  double loss = 0;
  std::optional<double> lr = {};
  std::optional<double> grad_norm = {};  ///< before clipping
  std::size_t tokens = 0;                ///< in the batch
};

struct FitOptions {
  detail::ByName by_name = {};
  bool progress = true;        ///< show step, loss, speed and remaining time on stderr
  std::size_t first_step = 0;  ///< the first step of a resumed run
  std::string metrics = {};    ///< path of a file for one line of JSON per step

  /// Called with the number of completed steps, whenever evaluate_every divides it; returning false ends the
  /// run.
  std::function<bool(std::size_t)> evaluate = {};
  std::size_t evaluate_every = 1000;

  /// Called with the number of completed steps, whenever save_every divides it, and after the last step of
  /// the run; not after an exception of step() or evaluate(), nor without a step.
  std::function<void(std::size_t)> save = {};
  std::size_t save_every = 1000;

  /// Called to observe the run, with the number of completed steps: before the steps 0, 1, 2, 5, 10, 20, 50,
  /// ... and the first one, and after the last. Its random numbers are drawn from a separate generator, so
  /// that it does not change the run.
  std::function<void(std::size_t)> observe = {};
  /// Called after a step preceded by observe(), with the same number: the leaves still have the gradients of
  /// that step.
  std::function<void(std::size_t)> observe_step = {};

  /// Description of the run in the first line of the metrics: its options by name, and its seed.
  std::map<std::string, std::string> about = {};
  std::optional<std::uint64_t> seed = {};
};

/// Result of a training run.
struct TrainingLog {
  std::vector<double> losses;  ///< one for each step of this run
  std::size_t steps = 0;       ///< in total, including those before first_step
  double seconds = 0;
  bool interrupted = false;  ///< by SIGINT, SIGTERM or SIGHUP
  int signal = 0;            ///< the one that interrupted it; 0 if another process got it
  bool stopped = false;      ///< by evaluate()
};

/// Calls step(first_step), ..., step(steps - 1), each of which trains one step.
///
/// Progress is a bar on a terminal, about ten lines elsewhere. SIGINT (Ctrl-C), SIGTERM and SIGHUP end the
/// run after the current step, and save; the previous handlers are restored at the end. A second SIGINT ends
/// the process immediately. The metrics file begins with a line {"run": {"versions": {"xgrad": "0.2.0"},
/// "options": {...}, "seed": "0"}}, followed by a line such as {"step": 3, "loss": 0.5, "lr": 0.001,
/// "grad_norm": 1.5, "tokens": 96, "seconds": 0.01} for each step; a resumed run keeps the lines of the steps
/// before first_step and appends to them. A run from step 0 replaces no file: it must be empty or absent.
///
/// Throws std::runtime_error for a loss or a gradient norm that is not finite,
/// "fit: the loss of step 12 is nan", without saving, so that the last checkpoint is from before that step.
/// Throws FileError for a metrics file that cannot be opened or that has other content; if writing to it
/// fails later, as on a full disk, the run saves, ends, and throws. Throws ValueError for an empty step, and
/// for evaluate with evaluate_every 0, and any exception of the functions.
TrainingLog fit(std::size_t steps, const std::function<StepResult(std::size_t)>& step,
                const FitOptions& options = {});

}  // namespace xgrad
