#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "../../ops/attention/attention.hpp"

namespace xgrad {

/// The keys and values of the tokens of one sequence, for each layer of a decoder: what the attention of
/// later tokens needs of them. Their memory doubles where it is full; a layer with a window forgets what no
/// later token sees.
template <class T>
class KeyValueCache {
 public:
  explicit KeyValueCache(std::size_t layers)
      : KeyValueCache(std::vector<std::optional<std::size_t>>(layers)) {}
  /// How many tokens each layer sees at once, the new one with them; all if absent.
  explicit KeyValueCache(const std::vector<std::optional<std::size_t>>& windows);

  /// A copy has keys and values of its own, and goes on by itself.
  KeyValueCache(const KeyValueCache& other);
  KeyValueCache(KeyValueCache&& other) noexcept = default;
  KeyValueCache& operator=(KeyValueCache other) noexcept {
    layers_.swap(other.layers_);
    tokens_.swap(other.tokens_);
    return *this;
  }

  std::size_t layers() const { return layers_.size(); }
  /// How many tokens a layer sees at once; all if absent.
  std::optional<std::size_t> window(std::size_t layer) const { return layers_.at(layer).window; }

  /// The number of tokens of the sequence up to now, also of those that were forgotten.
  std::size_t length() const;
  /// That of the tokens whose keys and values a layer has.
  std::size_t kept(std::size_t layer) const { return layers_.at(layer).rows; }

  /// The ids of the tokens, which a decoder notes whose keys do not hold for a longer sequence.
  const std::vector<std::int64_t>& tokens() const { return tokens_; }
  void note_tokens(std::span<const std::int64_t> next) {
    tokens_.insert(tokens_.end(), next.begin(), next.end());
  }

  /// Removes the tokens that a call which threw has appended in some layers, to a sequence of this length:
  /// the same call can be made again then.
  void undo(std::size_t length) noexcept;

  /// Attention of the queries of new tokens (1, n, H E) to themselves and all tokens before them: appends
  /// their keys (1, n, G E) and values (1, n, G Ev), and computes scaled_dot_product_attention with
  /// is_causal, the layer's window and the heads and scale of `options`. Throws GraphError where it would be
  /// recorded, ShapeError for other shapes, also than those of the tokens before.
  Variable<T> attend(std::size_t layer, const Variable<T>& q, const Variable<T>& k, const Variable<T>& v,
                     AttentionOptions options);

 private:
  struct Layer {
    std::optional<std::size_t> window;
    std::size_t rows = 0, forgotten = 0;
    Variable<T> keys, values;  // (1, capacity, G E or G Ev), of which `rows` are in use
  };

  void append(Layer& layer, const Variable<T>& k, const Variable<T>& v);

  std::vector<Layer> layers_;
  std::vector<std::int64_t> tokens_;
};

}  // namespace xgrad
