#pragma once

#include <cstdint>
#include <vector>

#include "../graph/random.hpp"
#include "stateful.hpp"

// A dataset is whatever gives an example for an index: what is here chooses the indices of each batch, and
// pads.

namespace xgrad {

/// Sequences as the rows of one array, filled up with `padding_value` to the length of the longest; (count,
/// longest). https://pytorch.org/docs/stable/generated/torch.nn.utils.rnn.pad_sequence.html (batch_first)
Ids pad_sequence(const std::vector<std::vector<std::int64_t>>& sequences, std::int64_t padding_value = 0);

/// 0 ... count - 1 in a random order, cut into parts of these lengths, which must add up to count (else
/// ValueError). https://pytorch.org/docs/stable/data.html#torch.utils.data.random_split
std::vector<std::vector<std::size_t>> random_split(std::size_t count, const std::vector<std::size_t>& lengths,
                                                   Generator& generator = default_generator());

struct BatchSamplerOptions {
  std::size_t batch_size = 1;
  bool shuffle = true;
  bool drop_last = false;  ///< leave out the last examples of an epoch if they fill no batch
};

/// Chooses the examples of each batch, epoch after epoch. Given the lengths of the examples, it puts those of
/// like length together, so that little of a batch is padding: shuffled examples are sorted within groups of
/// 32 batches, then the batches are shuffled. What drop_last leaves out is chosen before the sorting.
///
/// Each epoch draws one seed from the default generator and shuffles with a generator of its own, as
/// PyTorch's RandomSampler does; a checkpoint keeps the seed and the position.
class BatchSampler : public Stateful {
 public:
  /// Throws ValueError for no examples, a batch size of 0, or drop_last with fewer examples than a batch.
  BatchSampler(std::size_t examples, BatchSamplerOptions options);
  BatchSampler(std::vector<std::size_t> lengths, BatchSamplerOptions options);

  /// The indices of the examples of the next batch; after the last one of an epoch the next epoch begins.
  std::vector<std::size_t> next();

  /// Epochs that have begun, the current one included.
  std::size_t epoch() const { return epoch_; }
  std::size_t batches_per_epoch() const;

  Numbers state_dict() const override;
  /// Throws ValueError for the state of a sampler of another number of examples, too.
  void load_state_dict(const Numbers& state) override;

 private:
  void arrange();

  std::vector<std::size_t> lengths_;  // empty: of no importance
  std::size_t examples_;
  BatchSamplerOptions options_;
  std::size_t epoch_ = 0, at_ = 0;
  std::uint64_t seed_ = 0;
  std::vector<std::size_t> order_;
  std::vector<std::size_t> starts_;  // in order_, of each batch
};

}  // namespace xgrad
