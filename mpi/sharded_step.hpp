#pragma once

#include <algorithm>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "../base/detail/by_name.hpp"
#include "../graph/variable.hpp"
#include "../train/weighted_loss.hpp"
#include "communicator.hpp"
#include "detail/gradient_exchange.hpp"

namespace xgrad::mpi {

struct ShardedStepOptions {
  detail::ByName by_name = {};
  std::size_t shards = 8;         ///< number of parts of a batch
  std::uint64_t seed = 0;         ///< of the random numbers of the shards
  Communicator* ranks = nullptr;  ///< ranks that share the work; null: this process alone
  /// Bucket size of the gradients sent to other ranks during the backward pass.
  std::size_t bucket_bytes = std::size_t{1} << 20;
};

/// Time of a rank in ShardedStep::backward(), in seconds.
struct RankTimes {
  double computing = 0;    ///< for its shards and sums
  double waiting = 0;      ///< for other ranks and their messages
  double overlapping = 0;  ///< part of computing while buckets were in transit
};

/// "2 ranks computed 12.3 to 12.8 s (rank 1), 1.5 to 2 s of it while gradients were on their way, and waited
/// 0.02 to 0.42 s": the others wait for the rank with the longest computation. Throws ValueError for no
/// ranks.
[[nodiscard]] std::string summary(const std::vector<RankTimes>& times);

/// Computes the gradients of a batch in parts, called shards, so that several processes can share the work.
/// The result has the same bits for any number of processes and threads.
///
///   xgrad::mpi::ShardedStep<float> sharded(optimizer.parameters(), {.seed = seed, .ranks = &world});
///   xgrad::mpi::fit(world, steps, [&](std::size_t step) {
///     const auto loss = sharded.backward(step, batches.next(), [&](std::span<const std::size_t> examples) {
///       const Batch batch = make_batch(examples);
///       return xgrad::WeightedLoss<float>{
///           cross_entropy(model(batch.x), batch.y, {.reduction = xgrad::Reduction::sum}), weight(batch)};
///     });
///     optimizer.step();
///     return xgrad::StepResult{.loss = loss.mean()};
///   });
///
/// With b examples and S shards (at most b), shard s has examples [b s / S, b (s + 1) / S). Losses, weights
/// and gradients are added up in a balanced binary tree over the shards, and the gradients are divided by the
/// weight of the whole batch once, at the end. Rank r of R computes the shards [S r / R, S (r + 1) / R), one
/// after the other; a bucket of gradients is sent as soon as the last shard has completed it, in reverse
/// order of the parameters (Li et al. 2020, section 3.2.3). Each shard draws, for example for dropout, from a
/// separate random stream seeded with (seed, step, shard). The number of shards is a setting of the run, as
/// the batch size is; the number of ranks is not.
template <class T>
class ShardedStep {
 public:
  /// The loss of these examples. It must draw from the default generator only, and must not depend on state
  /// that changes from shard to shard.
  using Shard = std::function<WeightedLoss<T>(std::span<const std::size_t> examples)>;

  /// Throws ValueError for no shards, fewer shards than ranks, empty buckets, no parameters, a duplicate or a
  /// parameter that is not a leaf that requires a gradient; and on all ranks if the shards, the seed, the
  /// buckets or the parameters of one differ from rank 0.
  explicit ShardedStep(std::vector<Variable<T>> parameters, ShardedStepOptions options = {});

  /// Sets the gradient of every parameter to that of the mean loss of the batch; a parameter unused by all
  /// shards has none. All ranks pass the whole batch and get the loss of all. Throws ValueError for an empty
  /// batch, and for weights that are negative, not finite, or add up to 0; ShapeError for a loss of more than
  /// one element. With ranks, also throws, on all of them, if the step, the batch or (checked every 100
  /// calls) the parameters of one differ; an invalid result or an exception of a shard of one rank aborts the
  /// run of all.
  BatchLoss backward(std::size_t step, std::span<const std::size_t> examples, const Shard& shard);

  std::size_t shards() const { return options_.shards; }

  /// Times of every rank, in all calls so far; with ranks, without the last call, as ranks exchange them in
  /// the next.
  const std::vector<RankTimes>& rank_times() const& { return times_; }
  std::vector<RankTimes> rank_times() && { return std::move(times_); }

  /// Number of bytes sent by this rank in the last call, without those of comparisons.
  std::size_t bytes_sent() const { return bytes_sent_; }

 private:
  struct Sums;

  std::size_t shards_of(std::span<const std::size_t> examples) const {
    return std::min(options_.shards, examples.size());
  }
  std::size_t rank_count() const { return options_.ranks != nullptr ? options_.ranks->size() : 1; }
  std::uint64_t parameters_checksum() const;
  void check_agreement_in_step(std::size_t step, std::span<const std::size_t> examples);
  BatchLoss backward_alone(std::size_t step, std::span<const std::size_t> examples, const Shard& shard);
  BatchLoss backward_with_ranks(std::size_t step, std::span<const std::size_t> examples, const Shard& shard);
  std::span<const double> exchanged(std::size_t step, std::span<const std::size_t> examples,
                                    const Shard& shard);
  void give_up(const std::string& why);
  template <class F>
  Sums summed(std::size_t step, std::span<const std::size_t> examples, std::size_t shards, detail::Range mine,
              const Shard& function, const F& complete) const;
  template <class F>
  BatchLoss set_gradients(std::span<const double> numbers, const F& gradient_of);
  WeightedLoss<T> loss_of_shard(std::size_t step, std::size_t shard, std::span<const std::size_t> examples,
                                const Shard& function) const;

  std::vector<Variable<T>> parameters_;
  ShardedStepOptions options_;
  std::size_t calls_ = 0, bytes_sent_ = 0;
  std::vector<RankTimes> times_;
  RankTimes last_;                                         // of this rank, not yet sent
  std::unique_ptr<detail::GradientExchange<T>> exchange_;  // reused from step to step
};

}  // namespace xgrad::mpi
