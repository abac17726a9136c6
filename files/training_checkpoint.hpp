#pragma once

#include <cstddef>
#include <functional>
#include <map>
#include <string>
#include <vector>

#include "../train/stateful.hpp"
#include "safetensors.hpp"

namespace xgrad {

/// Reference to a part of a checkpoint, which must outlive this.
class TrainingPart {
 public:
  TrainingPart(Stateful& part)
      : list_([&part](StateArchive& state, const std::string& name) { state.part(name, part); }) {}

  template <class T>
  TrainingPart(const Module<T>& model)
      : list_([model](StateArchive& state, const std::string& name) { state.part(name, model); }) {}

  /// Additional weights, such as the best so far; may be empty.
  template <class T>
  TrainingPart(StateDict<T>& weights)
      : list_([&weights](StateArchive& state, const std::string& name) {
          state.keep(weights);
          state.arrays(name, weights);
        }) {}

  void list(StateArchive& state, const std::string& name) const { list_(state, name); }

 private:
  std::function<void(StateArchive&, const std::string&)> list_;
};

/// All state that changes from step to step except the default generator, by user-defined names without dots:
/// {{"model", model}, {"optimizer", optimizer}, {"scheduler", scheduler}}.
using TrainingParts = std::map<std::string, TrainingPart>;

/// Writes a training run after `step` steps into one safetensors file, as an AtomicFile: if the process ends
/// at any time, the file is complete, the new one or the previous one. It contains the arrays of all parts as
/// tensors "<part>.<name>", their numbers as F64 scalars "numbers.<part>.<name>" and "numbers.step", and as
/// metadata the default generator's state and `config`, the options of the run, with which load_checkpoint
/// compares its own. `about` is further metadata for whoever reads the file. Throws FileError, and ValueError
/// for a part whose name is empty, "numbers" or has a dot.
void save_checkpoint(const TrainingParts& parts, const std::string& path, std::size_t step,
                     const Metadata& config = {}, const Metadata& about = {});

/// Whether the metadata of a safetensors file is that of a checkpoint.
bool is_checkpoint(const Metadata& metadata);

/// Restores all parts and returns the number of completed steps: the run continues bit for bit as if
/// uninterrupted. Throws FileError for a file that is broken or not a checkpoint, ValueError for one of
/// another run, with all differences:
/// "run.safetensors: --d-model must be as in the checkpoint, '64', got '32'". On failure, changes nothing.
std::size_t load_checkpoint(const std::string& path, const TrainingParts& parts, const Metadata& config = {});

/// The same for the bytes of a file, such as another process has sent; `name` replaces its path in errors.
std::size_t load_checkpoint(const std::string& name, std::vector<std::byte> bytes, const TrainingParts& parts,
                            const Metadata& config = {});

}  // namespace xgrad
