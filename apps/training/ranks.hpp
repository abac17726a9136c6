#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <vector>

#include <xgrad/base/detail/text/json_tree_fwd.hpp>
#include <xgrad/files/training_checkpoint.hpp>
#include <xgrad/train/trainer.hpp>
#include <xgrad/train/weighted_loss.hpp>

namespace apps {

/// Makes the loss of these examples, as a sum.
using LossOfExamples = std::function<xgrad::WeightedLoss<float>(std::span<const std::size_t> examples)>;

/// What a training run asks of the processes that share the shards of its batches; MpiRanks answers.
class Ranks {
 public:
  virtual ~Ranks() = default;

  virtual std::size_t rank() const = 0;  ///< of this process, below size()
  virtual std::size_t size() const = 0;

  /// The parameters whose gradients backward() sets.
  virtual void share(std::vector<xgrad::Variable<float>> parameters, std::size_t shards,
                     std::uint64_t seed) = 0;
  virtual xgrad::BatchLoss backward(std::size_t step, std::span<const std::size_t> examples,
                                    const LossOfExamples& loss) = 0;
  virtual xgrad::TrainingLog fit(std::size_t steps, const std::function<xgrad::StepResult(std::size_t)>& step,
                                 const xgrad::FitOptions& options) = 0;
  virtual std::size_t load_checkpoint(const std::string& path, const xgrad::TrainingParts& parts,
                                      const xgrad::Metadata& config) = 0;
  /// The sums of these numbers over all ranks.
  virtual std::vector<std::uint64_t> sum(const std::vector<std::uint64_t>& mine) = 0;
  /// Throws xgrad::ValueError on all ranks unless all pass the same.
  virtual void compare(const xgrad::Metadata& mine) = 0;

  /// Ends the run of all ranks, if there are several, after a failure of this one.
  virtual void abort(const std::string& why) = 0;

  /// Adds the times of several ranks to the metrics.
  virtual void add_times(xgrad::detail::JsonTree& metrics) const = 0;
};

}  // namespace apps
