#pragma once

#include <cstddef>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "communicator.hpp"

namespace xgrad {

/// What one step of training returns. Only the loss is required; the rest is shown and logged if it is there.
struct StepResult {
  double loss = 0;
  std::optional<double> lr = {};
  std::optional<double> grad_norm = {};  ///< before clipping
  std::size_t tokens = 0;                ///< in the batch
};

struct FitOptions {
  bool progress = true;        ///< show step, loss, speed and time left on stderr
  std::size_t first_step = 0;  ///< the first step of a resumed run
  std::string metrics = {};    ///< a file that gets a line of JSON for every step

  /// Called with the number of steps done, whenever evaluate_every divides it; returning false ends the run.
  /// With ranks, all of them call it, and the run ends if one of them gives false.
  std::function<bool(std::size_t)> evaluate = {};
  std::size_t evaluate_every = 1000;

  /// Called with the number of steps done, whenever save_every divides it, and after the last step of the
  /// run; but not if step() or evaluate() has thrown, nor if there was no step to do. With ranks, rank 0
  /// alone calls it: it must not wait for the others, and must take less time than they wait for it
  /// (mpi::WorldOptions::timeout).
  std::function<void(std::size_t)> save = {};
  std::size_t save_every = 1000;

  /// Called to look at the run, with the number of steps done: before the steps 0, 1, 2, 5, 10, 20, 50, ...
  /// and the first one, and after the last. What it draws at random comes from another generator than the
  /// run's, so that it changes nothing. With ranks, rank 0 alone calls it.
  std::function<void(std::size_t)> observe = {};
  /// Called after a step before which observe() was called, with the same number: the leaves still have the
  /// gradients of that step.
  std::function<void(std::size_t)> observe_step = {};

  /// What the first line of the metrics tells of the run: its options by name, and its seed.
  std::map<std::string, std::string> about = {};
  std::optional<std::uint64_t> seed = {};

  /// The processes that share the run, each of which calls fit(); null for this one alone.
  Communicator* ranks = nullptr;
};

/// What a training run did.
struct TrainingLog {
  std::vector<double> losses;  ///< one for each step of this run
  std::size_t steps = 0;       ///< in all, including those before first_step
  double seconds = 0;
  bool interrupted = false;  ///< by SIGINT, SIGTERM or SIGHUP
  bool stopped = false;      ///< by evaluate()
};

/// Calls step(first_step), ..., step(steps - 1), each of which trains one step.
///
/// Progress is a bar on a terminal, and about ten lines elsewhere. SIGINT (Ctrl-C), SIGTERM and SIGHUP end
/// the run after the current step, and save; the handlers that were there are put back at the end. A second
/// SIGINT ends the process at once. The metrics file begins with a line
/// {"run": {"versions": {"xgrad": "0.2.0"}, "options": {...}, "seed": "0"}}, and has one such as
/// {"step": 3, "loss": 0.5, "lr": 0.001, "grad_norm": 1.5, "tokens": 96, "seconds": 0.01} for each step; a
/// resumed run keeps the lines of the steps before first_step and goes on after them.
///
/// With ranks, rank 0 shows progress, saves, and writes the metrics; a signal to one of them (SIGUSR1, too,
/// which mpirun hands on) ends the run of all after the same step. Before the first step all ranks have to
/// agree in the version of xgrad, the number of steps, the first step and the state of the default generator,
/// or ValueError says on all of them who differs in what; if they have processors with different
/// instructions, so that the weights depend on who computes what, rank 0 warns. An exception on one rank
/// aborts the run of all.
///
/// Throws std::runtime_error for a loss or a gradient norm that is not finite, "fit: the loss of step 12 is
/// nan"; it does not save then, so that the last checkpoint is from before that step. Throws
/// std::runtime_error for a metrics file that cannot be opened or that, in a resumed run, holds something
/// else; when writing to it fails later, as on a full disk, the run saves, ends, and throws. Throws
/// ValueError for an empty step, and whatever the functions throw.
TrainingLog fit(std::size_t steps, const std::function<StepResult(std::size_t)>& step,
                const FitOptions& options = {});

}  // namespace xgrad
