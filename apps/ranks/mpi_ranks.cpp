#include "mpi_ranks.hpp"

#include <cstdio>
#include <utility>

#include <xgrad/base/detail/text/json_tree.hpp>
#include <xgrad/base/file.hpp>
#include <xgrad/mpi/fit.hpp>

namespace apps {

void MpiRanks::share(std::vector<xgrad::Variable<float>> parameters, std::size_t shards, std::uint64_t seed) {
  step_.emplace(std::move(parameters),
                xgrad::mpi::ShardedStepOptions{.shards = shards, .seed = seed, .ranks = &ranks_});
}

xgrad::BatchLoss MpiRanks::backward(std::size_t step, std::span<const std::size_t> examples,
                                    const LossOfExamples& loss) {
  return step_->backward(step, examples, loss);
}

xgrad::TrainingLog MpiRanks::fit(std::size_t steps, const std::function<xgrad::StepResult(std::size_t)>& step,
                                 const xgrad::FitOptions& options) {
  xgrad::TrainingLog log = xgrad::mpi::fit(ranks_, steps, step, options);
  if (size() > 1 && rank() == 0) std::fprintf(stderr, "%s\n", summary(step_->rank_times()).c_str());
  return log;
}

std::size_t MpiRanks::load_checkpoint(const std::string& path, const xgrad::TrainingParts& parts,
                                      const xgrad::Metadata& config) {
  std::vector<std::byte> bytes;
  if (rank() == 0) {
    const xgrad::MappedFile file(path);
    bytes.assign(file.bytes().begin(), file.bytes().end());
    file.throw_if_changed();
  }
  return xgrad::load_checkpoint(path, broadcast(ranks_, std::move(bytes)), parts, config);
}

std::vector<std::uint64_t> MpiRanks::sum(const std::vector<std::uint64_t>& mine) {
  return all_sum(ranks_, mine);
}

void MpiRanks::compare(const xgrad::Metadata& mine) { check_agreement(ranks_, mine); }

void MpiRanks::abort(const std::string& why) {
  if (size() > 1) ranks_.abort(why);
}

void MpiRanks::add_times(xgrad::detail::JsonTree& metrics) const {
  if (size() == 1) return;
  metrics["ranks"] = xgrad::detail::JsonTree::array();
  for (const xgrad::mpi::RankTimes& times : step_->rank_times()) {
    metrics["ranks"].push_back(
        {{"computing", times.computing}, {"waiting", times.waiting}, {"overlapping", times.overlapping}});
  }
}

}  // namespace apps
