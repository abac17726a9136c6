#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <vector>

#include "../graph/variable.hpp"
#include "communicator.hpp"
#include "tree_sum.hpp"

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
};

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
/// computes the shards [S r / R, S (r + 1) / R), one after the other. Each shard draws, for dropout and the
/// like, from a stream of its own, which (seed, step, shard) gives. The number of shards is a setting of the
/// run, as the batch size is; the number of ranks is none.
template <class T>
class ShardedStep {
 public:
  /// The loss of these examples. It must draw from nothing but the default generator, and depend on nothing
  /// that changes from shard to shard.
  using Shard = std::function<WeightedLoss<T>(std::span<const std::size_t> examples)>;

  /// Throws ValueError for no shards, fewer shards than ranks, no parameters, one that is there
  /// twice or is not a leaf that requires a gradient; and on all ranks if one has other shards, another seed
  /// or other parameters than rank 0.
  explicit ShardedStep(std::vector<Variable<T>> parameters, ShardedStepOptions options = {});

  /// Sets the gradient of every parameter to that of the mean loss of the batch; a parameter that no shard
  /// used has none. All ranks give the whole batch, and get the loss of all. Throws ValueError for an empty
  /// batch, and for weights that are negative, not finite, or add up to 0; ShapeError for a loss of more than
  /// one element. With ranks, it also throws, on all of them, if one is in another step or has another batch,
  /// or has come to other parameters, which is looked at every 100 calls.
  BatchLoss backward(std::size_t step, std::span<const std::size_t> examples, const Shard& shard);

  std::size_t shards() const { return options_.shards; }

 private:
  struct Sum;
  using Node = typename detail::TreeSum<Sum>::Node;

  std::size_t rank_count() const;
  std::uint64_t parameters_checksum() const;
  void check_agreement_in_step(std::size_t step, std::span<const std::size_t> examples);
  Sum computed(std::size_t step, std::size_t shard, std::span<const std::size_t> examples,
               const Shard& function);
  Sum total_of_all(std::vector<Node>& nodes, std::size_t shards);

  std::vector<Variable<T>> parameters_;
  std::size_t elements_ = 0;  // of all parameters
  std::size_t calls_ = 0;

  // For what ranks send each other, kept from step to step: of each rank the numbers of all its nodes, and of
  // their elements those of one segment; and the sum of all elements.
  std::vector<std::vector<double>> numbers_;
  std::vector<std::vector<T>> sent_, received_;
  std::vector<T> all_;
  ShardedStepOptions options_;
};

}  // namespace xgrad
