#pragma once

#include <optional>
#include <variant>

#include "attention/positional_encoding.hpp"
#include "layers/embedding.hpp"
#include "transformer/encoder.hpp"

namespace xgrad {

/// Kind of positional encoding.
enum class Positions { learned, sinusoidal };

/// Pooling of a sequence for the class head.
enum class Pooling {
  mean,   ///< the mean over all positions except padding
  first,  ///< the first position, which holds a class token
};

/// Configuration of a ToyEncoder; vocab_size, max_len and encoder are required.
struct ToyEncoderConfig {
  std::size_t vocab_size = 0;  ///< upper bound of ids
  std::size_t max_len = 0;     ///< maximum sequence length
  std::size_t classes = 0;     ///< 0: no class head
  EncoderConfig encoder = {};
  std::optional<std::int64_t> pad_id = {};  ///< the attention mask excludes positions with this id
  Positions positions = Positions::learned;
  Pooling pooling = Pooling::mean;
};

/// Token and position embeddings, an encoder, and two heads: token_head predicts the token at each position,
/// class_head the class of the sequence.
///
/// ids (batch, seq). Throws ValueError for an invalid config, ShapeError for ids of another rank or longer
/// than max_len, IndexError for ids that are not below vocab_size.
template <class T>
class ToyEncoder : public Module<T> {
 public:
  explicit ToyEncoder(const ToyEncoderConfig& config);

  const ToyEncoderConfig& config() const& { return config_; }
  ToyEncoderConfig config() && { return config_; }

  /// The encoded tokens, (batch, seq, d_model).
  Variable<T> operator()(const Ids& ids) const;

  /// Forward that also returns every layer's attention weights (batch, heads, seq, seq).
  EncoderResult<T> with_weights(const Ids& ids) const;

  /// Token logits, (batch, seq, vocab_size).
  Variable<T> token_logits(const Ids& ids) const;

  /// Class logits, (batch, classes). Throws ValueError if the config has no classes.
  Variable<T> class_logits(const Ids& ids) const;

  /// Ids are integers: xt::cast<std::int64_t>(ids).
  template <detail::NoIds E>
  Variable<T> operator()(const E& ids) const = delete;
  template <detail::NoIds E>
  EncoderResult<T> with_weights(const E& ids) const = delete;
  template <detail::NoIds E>
  Variable<T> token_logits(const E& ids) const = delete;
  template <detail::NoIds E>
  Variable<T> class_logits(const E& ids) const = delete;

  /// The heads applied to encoded tokens.
  Variable<T> token_logits(const Variable<T>& encoded) const;
  Variable<T> class_logits(const Variable<T>& encoded, const Ids& ids) const;

 private:
  using PositionEmbedding = std::variant<LearnedPositionalEncoding<T>, SinusoidalPositionalEncoding<T>>;

  PositionEmbedding make_positions();
  Variable<T> embed(const Ids& ids) const;
  AttentionMask<T> mask(const Ids& ids) const;
  Variable<T> pool(const Variable<T>& encoded, const Ids& ids) const;

  ToyEncoderConfig config_;
  Embedding<T> token_embedding_;
  PositionEmbedding position_embedding_;
  TransformerEncoder<T> encoder_;
  Linear<T> token_head_;
  std::optional<Linear<T>> class_head_;
};

}  // namespace xgrad
