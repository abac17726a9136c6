#pragma once

#include <optional>
#include <string>
#include <vector>

#include <xgrad/models/encoder.hpp>
#include <xgrad/models/toy_encoder.hpp>

namespace learn {

/// What an encoder can be made without, to see what it is for.
struct Parts {
  bool positions = true;  ///< a vector for each position is added to the words'
  bool residual = true;   ///< what attention and the feed-forward network give is added to their input
};

/// A layer of the encoder. x and its result (batch, seq, d_model).
class PartialLayer : public xgrad::Module<float> {
 public:
  PartialLayer(const xgrad::EncoderConfig& config, bool residual)
      : xgrad::Module<float>("PartialLayer"),
        residual_(residual),
        self_attn_(child("self_attn", xgrad::MultiHeadAttention<float>(config.d_model, config.heads))),
        feed_forward_(child("feed_forward", xgrad::FeedForward<float>(config.d_model, config.d_ff))),
        norm1_(child("norm1", xgrad::LayerNorm<float>(config.d_model))),
        norm2_(child("norm2", xgrad::LayerNorm<float>(config.d_model))) {}

  xgrad::Variable<float> operator()(const xgrad::Variable<float>& x, const xgrad::Mask& mask) const {
    const auto scope = this->scope();
    const xgrad::Variable<float> attended = self_attn_(x, mask);
    const xgrad::Variable<float> y = residual_ ? norm1_(attended, x) : norm1_(attended);
    const xgrad::Variable<float> fed = feed_forward_(y);
    return residual_ ? norm2_(fed, y) : norm2_(fed);
  }

 private:
  bool residual_;
  xgrad::MultiHeadAttention<float> self_attn_;
  xgrad::FeedForward<float> feed_forward_;
  xgrad::LayerNorm<float> norm1_, norm2_;
};

/// A ToyEncoder from which parts can be taken; with all of them it is one, bit for bit, from the same seed.
class PartialEncoder : public xgrad::Module<float> {
 public:
  /// `config` must have a pad_id.
  PartialEncoder(const xgrad::ToyEncoderConfig& config, Parts parts)
      : xgrad::Module<float>("PartialEncoder"),
        pad_id_(config.pad_id.value()),
        token_embedding_(child(
            "token_embedding",
            xgrad::Embedding<float>(config.vocab_size, config.encoder.d_model, {.padding_idx = pad_id_}))) {
    // Drawn in any case, so that the same seed gives the same other weights.
    const xgrad::LearnedPositionalEncoding<float> positions(config.max_len, config.encoder.d_model);
    if (parts.positions) position_embedding_ = child("position_embedding", positions);
    for (std::size_t i = 0; i < config.encoder.layers; ++i)
      layers_.push_back(child("layers." + std::to_string(i), PartialLayer(config.encoder, parts.residual)));
    token_head_ = child("token_head", xgrad::Linear<float>(config.encoder.d_model, config.vocab_size));
  }

  /// ids (batch, seq); how well each word of the vocabulary fits each place: (batch, seq, vocab_size).
  xgrad::Variable<float> token_logits(const xgrad::Ids& ids) const {
    const auto scope = this->scope();
    xgrad::Variable<float> x = token_embedding_(ids);
    if (position_embedding_) x = (*position_embedding_)(x);
    for (const PartialLayer& layer : layers_) x = layer(x, xgrad::padding_mask(ids, pad_id_));
    return (*token_head_)(x);
  }

 private:
  std::int64_t pad_id_;
  xgrad::Embedding<float> token_embedding_;
  std::optional<xgrad::LearnedPositionalEncoding<float>> position_embedding_;
  std::vector<PartialLayer> layers_;
  std::optional<xgrad::Linear<float>> token_head_;
};

}  // namespace learn
