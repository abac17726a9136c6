#pragma once

#include <functional>
#include <map>
#include <string>

#include "../models/module.hpp"
#include "../train/moving_average.hpp"
#include "../train/stateful.hpp"
#include "safetensors.hpp"

namespace xgrad {

/// The parts of a training run that change from step to step. The default generator is one more.
template <class T>
struct TrainingParts {
  Module<T> model;
  Optimizer<T>& optimizer;
  ExponentialMovingAverage<T>* average = nullptr;
  StateDict<T>* best = nullptr;  ///< weights that early stopping keeps; empty before there are any
  /// Schedule, batches, early stopping: each under a name of the caller's, without dots.
  std::map<std::string, std::reference_wrapper<Stateful>> others = {};
};

/// Writes a training run after `step` steps into one safetensors file, as an AtomicFile: whenever the process
/// ends, the file is the new one or the one before, whole. It holds the tensors "model.<name>",
/// "optimizer.<name>", "average.<name>" and "best.<name>", F64 scalars "numbers.<part>.<name>" and
/// "numbers.step", and in its metadata the default generator's state and `config`, what the run was started
/// with. Throws FileError.
template <class T>
void save_checkpoint(const std::string& path, const TrainingParts<T>& parts, std::size_t step,
                     const Metadata& config = {});

/// Puts everything back as it was saved and returns the number of steps done: the run goes on bit for bit as
/// if it had not stopped. Throws FileError for a file that is broken or no checkpoint, ValueError for one of
/// another run: "run.safetensors: --d-model must be as in the checkpoint, '64', got '32'". Changes nothing
/// then.
template <class T>
std::size_t load_checkpoint(const std::string& path, const TrainingParts<T>& parts,
                            const Metadata& config = {});

}  // namespace xgrad
