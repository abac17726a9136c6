#pragma once

#include <optional>

#include <xgrad/mpi/sharded_step.hpp>

#include "../training/ranks.hpp"

namespace apps {

/// The ranks of a communicator, which may be one alone.
class MpiRanks : public Ranks {
 public:
  /// The communicator must outlive it.
  explicit MpiRanks(xgrad::mpi::Communicator& ranks) : ranks_(ranks) {}

  std::size_t rank() const override { return ranks_.rank(); }
  std::size_t size() const override { return ranks_.size(); }

  void share(std::vector<xgrad::Variable<float>> parameters, std::size_t shards, std::uint64_t seed) override;
  xgrad::BatchLoss backward(std::size_t step, std::span<const std::size_t> examples,
                            const LossOfExamples& loss) override;
  /// xgrad::mpi::fit(), which then shows the times of several ranks.
  xgrad::TrainingLog fit(std::size_t steps, const std::function<xgrad::StepResult(std::size_t)>& step,
                         const xgrad::FitOptions& options) override;
  /// Rank 0 reads the file and sends it to the others, which need no access to it.
  std::size_t load_checkpoint(const std::string& path, const xgrad::TrainingParts& parts,
                              const xgrad::Metadata& config) override;
  std::vector<std::uint64_t> sum(const std::vector<std::uint64_t>& mine) override;
  void compare(const xgrad::Metadata& mine) override;
  void abort(const std::string& why) override;
  void add_times(xgrad::detail::JsonTree& metrics) const override;

 private:
  xgrad::mpi::Communicator& ranks_;
  std::optional<xgrad::mpi::ShardedStep<float>> step_;
};

}  // namespace apps
