#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "attention/key_value_cache.hpp"

namespace xgrad {

/// A model that predicts the next token of sequences from the tokens before it, whose keys and values it
/// keeps in caches: what generation::generate() needs of a model. CausalLM and ToyDecoder are some; a model
/// of your own derives from it, too.
template <class T>
class AutoregressiveModel {
 public:
  virtual ~AutoregressiveModel() = default;

  /// An empty cache for one sequence.
  virtual KeyValueCache<T> new_cache() const = 0;

  /// Logits (sequences, vocab_size) of the next token of several sequences. `tokens` (rows) are new ones, one
  /// sequence after the other: lengths[i] of them follow those that caches[i] has, which it then has of the
  /// new ones, too. A cache may be empty and the new tokens many: in the first call, after a text has been
  /// shortened, and without use_cache. Called under NoGrad. A call that throws must not change a cache.
  virtual Variable<T> next_logits(const Ids& tokens, std::span<const std::size_t> lengths,
                                  std::span<KeyValueCache<T>> caches) const = 0;

  /// The maximum number of tokens of a sequence, if there is one.
  virtual std::optional<std::size_t> max_length() const { return std::nullopt; }

  /// Tokens that end a text.
  virtual std::vector<std::int64_t> eos_token_ids() const { return {}; }

 protected:
  AutoregressiveModel() = default;
  AutoregressiveModel(const AutoregressiveModel&) = default;
  AutoregressiveModel& operator=(const AutoregressiveModel&) = default;
};

}  // namespace xgrad
