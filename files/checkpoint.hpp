#pragma once

#include <functional>
#include <map>
#include <string>

#include "../train/communicator.hpp"
#include "../train/stateful.hpp"
#include "safetensors.hpp"

namespace xgrad {

/// Something that a checkpoint keeps; it must outlive this.
class TrainingPart {
 public:
  TrainingPart(Stateful& part)
      : list_([&part](StateArchive& state, const std::string& name) { state.part(name, part); }) {}

  template <class T>
  TrainingPart(const Module<T>& model)
      : list_([model](StateArchive& state, const std::string& name) { state.part(name, model); }) {}

  /// Weights beside the model's, such as the best so far; there may be none yet.
  template <class T>
  TrainingPart(StateDict<T>& weights)
      : list_([&weights](StateArchive& state, const std::string& name) { state.arrays(name, weights); }) {}

  void list(StateArchive& state, const std::string& name) const { list_(state, name); }

 private:
  std::function<void(StateArchive&, const std::string&)> list_;
};

/// All that changes from step to step but the default generator, by names of your own without dots:
/// {{"model", model}, {"optimizer", optimizer}, {"scheduler", scheduler}}.
using TrainingParts = std::map<std::string, TrainingPart>;

/// Writes a training run after `step` steps into one safetensors file, as an AtomicFile: whenever the process
/// ends, the file is the new one or the one before, whole. It holds the arrays of all parts as tensors
/// "<part>.<name>", their numbers as F64 scalars "numbers.<part>.<name>" and "numbers.step", and in its
/// metadata the default generator's state and `config`, what the run was started with. Throws FileError, and
/// ValueError for a part whose name is empty, "numbers" or has a dot.
void save_checkpoint(const TrainingParts& parts, const std::string& path, std::size_t step,
                     const Metadata& config = {});

/// Puts everything back as it was saved and returns the number of steps done: the run goes on bit for bit as
/// if it had not stopped. Throws FileError for a file that is broken or no checkpoint, ValueError for one of
/// another run, naming all that is wrong: "run.safetensors: --d-model must be as in the checkpoint, '64', got
/// '32'". Changes nothing then.
///
/// With ranks, rank 0 reads the file and sends it to the others, which need not see it.
std::size_t load_checkpoint(const std::string& path, const TrainingParts& parts, const Metadata& config = {},
                            Communicator* ranks = nullptr);

}  // namespace xgrad
