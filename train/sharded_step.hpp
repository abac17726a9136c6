#pragma once

#include <algorithm>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "../graph/variable.hpp"
#include "communicator.hpp"
#include "detail/gradient_exchange.hpp"

namespace xgrad {

/// The loss of some examples as a sum, and what to divide it by for the mean: how many examples or words it
/// is of.
template <class T>
struct WeightedLoss {
  Variable<T> sum;         ///< one element
  double weight;           ///< at least 0
  std::size_t tokens = 0;  ///< as in StepResult
};

/// The loss of a batch.
struct BatchLoss {
  double sum = 0;
  double weight = 0;
  std::size_t tokens = 0;
  double mean() const { return sum / weight; }
};

struct ShardedStepOptions {
  std::size_t shards = 8;         ///< into how many parts a batch is cut
  std::uint64_t seed = 0;         ///< of what the shards draw
  Communicator* ranks = nullptr;  ///< that share the work; null for this process alone
  /// Gradients go to the other ranks in buckets of this size, while the backward pass goes on.
  std::size_t bucket_bytes = std::size_t{1} << 20;
};

/// Where a rank's time has gone, in seconds, in ShardedStep::backward().
struct RankTimes {
  double computing = 0;    ///< its shards, and sums
  double waiting = 0;      ///< for other ranks, and for what they send
  double overlapping = 0;  ///< of computing, while buckets were on their way
};

/// "2 ranks computed 12.3 to 12.8 s (rank 1), 1.5 to 2 s of it while gradients were on their way, and waited
/// 0.02 to 0.42 s": the rank that computes longest is the one that the others wait for. Throws ValueError for
/// no ranks.
std::string summary(const std::vector<RankTimes>& times);

/// Computes the gradients of a batch in parts, its shards, so that several processes can share the work and
/// the result does not depend on how many there are: bit for bit, with any number of threads.
///
///   xgrad::ShardedStep<float> sharded(optimizer.parameters(), {.seed = seed, .ranks = &world});
///   fit(steps, [&](std::size_t step) {
///     const auto loss = sharded.backward(step, batches.next(), [&](std::span<const std::size_t> examples) {
///       const Batch batch = make_batch(examples);
///       return xgrad::WeightedLoss<float>{
///           cross_entropy(model(batch.x), batch.y, {.reduction = xgrad::Reduction::sum}), weight(batch)};
///     });
///     optimizer.step();
///     return xgrad::StepResult{.loss = loss.mean()};
///   });
///
/// With b examples and S shards (but b, if there are fewer examples) shard s has the examples
/// [b s / S, b (s + 1) / S). Losses, weights and gradients are added up in a balanced binary tree over the
/// shards, and the gradients are divided by the weight of the whole batch once, at the end. Rank r of R
/// computes the shards [S r / R, S (r + 1) / R), one after the other; as soon as the last of them adds
/// nothing more to the gradients of a bucket, they are sent, the last parameters' first (Li et al. 2020,
/// section 3.2.3). Each shard draws, for dropout and the like, from a stream of its own, which (seed, step,
/// shard) gives. The number of shards is a setting of the run, as the batch size is; the number of ranks is
/// none.
template <class T>
class ShardedStep {
 public:
  /// The loss of these examples. It must draw from nothing but the default generator, and depend on nothing
  /// that changes from shard to shard.
  using Shard = std::function<WeightedLoss<T>(std::span<const std::size_t> examples)>;

  /// Throws ValueError for no shards, fewer shards than ranks, empty buckets, no parameters, one that is
  /// there twice or is not a leaf that requires a gradient; and on all ranks if one has other shards, another
  /// seed, other buckets or other parameters than rank 0.
  explicit ShardedStep(std::vector<Variable<T>> parameters, ShardedStepOptions options = {});

  /// Sets the gradient of every parameter to that of the mean loss of the batch; a parameter that no shard
  /// used has none. All ranks give the whole batch, and get the loss of all. Throws ValueError for an empty
  /// batch, and for weights that are negative, not finite, or add up to 0; ShapeError for a loss of more than
  /// one element. With ranks, it also throws, on all of them, if one is in another step or has another batch,
  /// or has come to other parameters, which is looked at every 100 calls; what is wrong with a shard of one
  /// rank, or thrown there, aborts the run of all.
  BatchLoss backward(std::size_t step, std::span<const std::size_t> examples, const Shard& shard);

  std::size_t shards() const { return options_.shards; }

  /// Of every rank, in all calls so far; with ranks but for the last one, which they tell each other in the
  /// next.
  const std::vector<RankTimes>& rank_times() const { return times_; }

  /// How many bytes this rank has sent in the last call, but for what is compared.
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
  std::unique_ptr<detail::GradientExchange<T>> exchange_;  // kept from step to step
};

}  // namespace xgrad
