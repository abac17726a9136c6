#pragma once

#include <cstdint>
#include <vector>

#include "../base/detail/by_name.hpp"
#include "../base/random.hpp"
#include "stateful.hpp"

// There is no dataset class: your code looks up the example of an index. The functions below split a dataset,
// choose the indices of each batch, and pad sequences to one length.

namespace xgrad {

/// The sequences as rows of one array of shape (count, longest), padded with `padding_value`.
/// https://pytorch.org/docs/stable/generated/torch.nn.utils.rnn.pad_sequence.html (batch_first)
[[nodiscard]] Ids pad_sequence(const std::vector<std::vector<std::int64_t>>& sequences,
                               std::int64_t padding_value = 0);

/// 0 ... count - 1 in a random order, split into parts of these lengths. Throws ValueError unless they add up
/// to count. https://pytorch.org/docs/stable/data.html#torch.utils.data.random_split
[[nodiscard]] std::vector<std::vector<std::size_t>> random_split(std::size_t count,
                                                                 const std::vector<std::size_t>& lengths,
                                                                 Generator& generator = default_generator());

struct BatchSamplerOptions {
  detail::ByName by_name = {};
  std::size_t batch_size = 1;
  bool shuffle = true;
  bool drop_last = false;  ///< drop the last incomplete batch of an epoch
};

/// Chooses the examples of each batch, epoch after epoch. Given the lengths of the examples, it batches
/// examples of similar length to reduce padding: the shuffled examples are sorted by length within groups of
/// 32 batches, then the batches are shuffled. drop_last drops examples before sorting, so that long ones are
/// not dropped more often than short ones.
///
/// Each epoch draws one seed from the default generator and shuffles with a separate generator, as PyTorch's
/// RandomSampler does; the state is the epoch, that seed and the position in the epoch.
class BatchSampler : public Stateful {
 public:
  /// Throws ValueError for no examples, a batch size of 0, or drop_last with fewer examples than one batch.
  BatchSampler(std::size_t examples, BatchSamplerOptions options);
  BatchSampler(std::vector<std::size_t> lengths, BatchSamplerOptions options);

  /// Indices of the examples of the next batch; starts the next epoch after the last batch of an epoch. A
  /// call that throws std::bad_alloc has changed nothing, nor the default generator.
  std::vector<std::size_t> next();

  /// The number of started epochs, including the current one.
  std::size_t epoch() const { return epoch_; }
  std::size_t batches_per_epoch() const;

 protected:
  /// The number of examples is saved too, and must be the same when the state is loaded.
  void list_state(StateArchive& state) override;

 private:
  /// The order of an epoch.
  struct Epoch {
    std::vector<std::size_t> order;   // of the examples
    std::vector<std::size_t> starts;  // of each batch, in order
  };

  Epoch arranged(std::size_t seed) const;
  std::vector<std::size_t> batch_at(const Epoch& epoch, std::size_t position) const;

  std::vector<std::size_t> lengths_;  // of the examples; empty if not given
  std::size_t examples_;
  BatchSamplerOptions options_;
  std::size_t epoch_ = 0, position_ = 0, seed_ = 0;
  Epoch current_;
};

}  // namespace xgrad
