#pragma once

#include <cstddef>
#include <functional>
#include <optional>
#include <string>
#include <vector>

namespace xgrad {

/// What one step of training did. Only the loss has to be there; the rest is shown and logged if it is.
struct StepResult {
  double loss = 0;
  std::optional<double> lr = {};
  std::optional<double> grad_norm = {};  ///< before clipping
  std::size_t tokens = 0;                ///< that went through the model
};

struct FitOptions {
  bool progress = true;        ///< show step, loss, speed and time left on stderr
  std::size_t first_step = 0;  ///< where a resumed run goes on
  std::string metrics = {};    ///< a file that gets a line of JSON for every step

  /// Called after every so many steps, counted from 0, with the number of steps done; false ends the run.
  std::function<bool(std::size_t)> evaluate = {};
  std::size_t evaluate_every = 1000;

  /// Called with the number of steps done after every so many, and after the last step of the run, however
  /// it ends but for an error of step() or evaluate(), which comes before it. Not called if no step is left.
  std::function<void(std::size_t)> save = {};
  std::size_t save_every = 1000;
};

/// What a training run did.
struct TrainingLog {
  std::vector<double> losses;  ///< of each step that this run did
  std::size_t steps = 0;       ///< done in all, those before first_step included
  double seconds = 0;
  bool interrupted = false;  ///< by SIGINT, SIGTERM or SIGHUP
  bool stopped = false;      ///< by evaluate()
};

/// Calls step(first_step), ..., step(steps - 1), each of which trains one step.
///
/// Progress is a bar on a terminal, and about ten lines otherwise. SIGINT (Ctrl-C), SIGTERM and SIGHUP end
/// the run after the current step, and save; the handlers that were there are put back at the end. A second
/// SIGINT ends the process at once. The metrics file has a line such as
/// {"step": 3, "loss": 0.5, "lr": 0.001, "grad_norm": 1.5, "tokens": 96, "seconds": 0.01} for each step; a
/// resumed run keeps the lines of the steps before first_step and goes on after them.
///
/// Throws std::runtime_error for a loss or a gradient norm that is not finite, "fit: the loss of step 12 is
/// nan", without saving: what was saved last is from before it. Throws std::runtime_error for a metrics file
/// that cannot be opened or, in a resumed run, is something else; one that cannot be written later, such as
/// on a full disk, ends the run, which saves and then throws. Throws ValueError for an empty step, and
/// whatever the functions throw.
TrainingLog fit(std::size_t steps, const std::function<StepResult(std::size_t)>& step,
                const FitOptions& options = {});

}  // namespace xgrad
