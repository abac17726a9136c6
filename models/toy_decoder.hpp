#pragma once

#include "attention/positional_encoding.hpp"
#include "autoregressive_model.hpp"
#include "layers/embedding.hpp"
#include "transformer/encoder.hpp"

namespace xgrad {

/// Configuration of a ToyDecoder; vocab_size, max_len and layers are required.
struct ToyDecoderConfig {
  std::size_t vocab_size = 0;  ///< upper bound of ids
  std::size_t max_len = 0;     ///< maximum sequence length
  EncoderConfig layers = {};   ///< causal, whatever is_causal says
};

/// A small GPT (Radford et al. 2018): token and learned position embeddings, layers in which a token attends
/// to itself and those before it, and token_head, which predicts the token behind each position. With
/// norm_first in `layers` its layers are those of GPT-2.
///
/// ids (batch, seq). Throws ValueError for an invalid config, ShapeError for ids of another rank or longer
/// than max_len, IndexError for ids that are not below vocab_size.
template <class T>
class ToyDecoder : public Module<T>, public AutoregressiveModel<T> {
 public:
  explicit ToyDecoder(const ToyDecoderConfig& config);

  const ToyDecoderConfig& config() const& { return config_; }
  ToyDecoderConfig config() && { return config_; }

  /// The hidden states, (batch, seq, d_model).
  Variable<T> operator()(const Ids& ids) const;

  /// Forward that also returns every layer's attention weights (batch, heads, seq, seq).
  EncoderResult<T> with_weights(const Ids& ids) const;

  /// Logits of the next tokens, (batch, seq, vocab_size).
  Variable<T> token_logits(const Ids& ids) const;
  /// Those of hidden states (..., d_model).
  Variable<T> token_logits(const Variable<T>& hidden) const;

  KeyValueCache<T> new_cache() const override;
  /// Throws GraphError except under NoGrad, ShapeError for caches of another model, for lengths that do not
  /// fit and for sequences of more than max_len tokens, IndexError for ids that are not below vocab_size.
  Variable<T> next_logits(const Ids& tokens, std::span<const std::size_t> lengths,
                          std::span<KeyValueCache<T>> caches) const override;
  std::optional<std::size_t> max_length() const override { return config_.max_len; }

  /// Ids are integers: xt::cast<std::int64_t>(ids).
  template <detail::NoIds E>
  Variable<T> operator()(const E& ids) const = delete;
  template <detail::NoIds E>
  EncoderResult<T> with_weights(const E& ids) const = delete;
  template <detail::NoIds E>
  Variable<T> token_logits(const E& ids) const = delete;

 private:
  Variable<T> embed(const Ids& ids) const;

  ToyDecoderConfig config_;
  Embedding<T> token_embedding_;
  LearnedPositionalEncoding<T> position_embedding_;
  TransformerEncoder<T> layers_;
  Linear<T> token_head_;
};

}  // namespace xgrad
