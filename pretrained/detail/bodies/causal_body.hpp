#pragma once

#include <span>

#include "../../../models/key_value_cache.hpp"
#include "../../causal_config.hpp"
#include "../causal_family.hpp"
#include "body.hpp"

// Not installed: the body of all families of decoders.
namespace xgrad::pretrained::detail {

/// New tokens of several sequences, one after the other, and what their sequences have before them.
template <class T>
struct CachedRows {
  std::span<const std::size_t> lengths;  ///< how many tokens of each
  std::span<KeyValueCache<T>> caches;
};

/// What runs between ids and hidden states: embeddings, blocks and a last norm. Its parameters have the names
/// of Hugging Face's class without a head, but for those that files have in one matrix.
template <class T>
class CausalBody : public Assembled<T> {
 public:
  CausalBody(const CausalConfig& config, Weights& weights);

  /// The last hidden states (batch, length, size); keeps those of the embeddings and of each layer but the
  /// last. With `checkpoints`, the graph keeps nothing of a layer but what it gets.
  Variable<T> operator()(const EncoderCall<T>& call, bool checkpoints) const;

  /// The last hidden states (1, rows, size) of new tokens (1, rows).
  Variable<T> operator()(const Ids& ids, const CachedRows<T>& cached) const;

  /// Whether keys of a sequence may not hold once it is longer, and whether they hold from one length to
  /// another.
  bool keys_depend_on_length() const { return rotary_ && rotary_->depend_on_length(); }
  bool keys_hold(std::size_t length, std::size_t longer) const {
    return !rotary_ || rotary_->are_same(length, longer);
  }

  const Embedding<T>& words() const { return words_; }

  /// The names of what comes before the layers, and of layer i, for freezing.
  std::vector<std::string> embedding_names() const;
  std::string layer_name(std::size_t i) const;

 private:
  Variable<T> embed(const Ids& ids, const Ids& positions) const;
  Variable<T> layers(const EncoderCall<T>& call, ForwardContext<T> context, Variable<T> x,
                     bool checkpoints) const;

  CausalConfig config_;
  Embedding<T> words_;
  std::optional<Embedding<T>> positions_;
  std::vector<TransformerBlock<T>> layers_;
  std::optional<EitherNorm<T>> last_norm_;  // declared after the layers, as in files
  std::optional<RotaryPositions<T>> rotary_;
};

}  // namespace xgrad::pretrained::detail
