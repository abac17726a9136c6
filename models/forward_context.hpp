#pragma once

#include <cstddef>
#include <memory>
#include <span>
#include <vector>

#include "../ops/attention/attention_mask.hpp"
#include "attention/key_value_cache.hpp"
#include "attention/rotary_tables.hpp"

namespace xgrad {

/// Positions for blocks whose attention is of their own, which know its class.
struct AttentionPositions {
  virtual ~AttentionPositions() = default;
};

/// What the blocks of a stack get beside x: a value, which a checkpointed block keeps for the recomputation.
template <class T>
struct ForwardContext {
  AttentionMask<T> mask = {};                ///< of keys; broadcasts to (batch, heads, queries, keys)
  std::vector<RotaryTables<T>> rotary = {};  ///< tables that blocks name by their index
  Variable<T> memory = {};                   ///< what cross-attention attends to (batch, length, d_model)
  AttentionMask<T> memory_mask = {};         ///< of its keys
  std::shared_ptr<const AttentionPositions> positions = {};

  /// Without padding: x is (rows, d_model), of sequences of these lengths; empty otherwise.
  std::vector<std::size_t> packed_lengths = {};

  /// With caches, x is (1, rows, d_model): this many new tokens of each sequence, one after the other.
  std::span<KeyValueCache<T>> caches = {};
  std::span<const std::size_t> new_tokens = {};
  std::size_t slot = 0;  ///< of the block in the caches

  // Observers, which see what the fused ops do not compute

  std::vector<Variable<T>>* attentions = nullptr;  ///< gets the attention weights of each block
  std::vector<Variable<T>>* memory_attentions = nullptr;
};

}  // namespace xgrad
