#pragma once

#include <optional>
#include <string>
#include <vector>

#include <xgrad/models/toy_encoder.hpp>
#include <xgrad/models/transformer/encoder.hpp>
#include <xgrad/models/transformer_block.hpp>

namespace learn {

/// What an encoder can be made without, to see what it is for.
struct Parts {
  bool positions = true;  ///< a vector for each position is added to the words'
  bool residual = true;   ///< what attention and the feed-forward network give is added to their input
};

/// The parts of a layer of the encoder, in the order in which a ToyEncoder draws them.
inline constexpr xgrad::NamedPart layer_names[]{{xgrad::BlockPart::query, "W_Q"},
                                                {xgrad::BlockPart::key, "W_K"},
                                                {xgrad::BlockPart::value, "W_V"},
                                                {xgrad::BlockPart::out, "out_proj"},
                                                {xgrad::BlockPart::up, "linear1"},
                                                {xgrad::BlockPart::down, "linear2"},
                                                {xgrad::BlockPart::attention_norm, "norm1"},
                                                {xgrad::BlockPart::feed_forward_norm, "norm2"}};

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
    xgrad::InitialLayers<float> source;
    const xgrad::TransformerBlockOptions layer{
        .d_model = config.encoder.d_model,
        .num_heads = config.encoder.heads,
        .d_ff = config.encoder.d_ff,
        .residual = parts.residual ? xgrad::Residual::post_norm : xgrad::Residual::none,
        .qkv_bias = false,
        .out_bias = false};
    for (std::size_t i = 0; i < config.encoder.layers; ++i)
      layers_.push_back(
          child("layers." + std::to_string(i), xgrad::TransformerBlock<float>(layer, layer_names, source)));
    token_head_ = child("token_head", xgrad::Linear<float>(config.encoder.d_model, config.vocab_size));
  }

  /// ids (batch, seq); how well each word of the vocabulary fits each place: (batch, seq, vocab_size).
  xgrad::Variable<float> token_logits(const xgrad::Ids& ids) const {
    const auto scope = this->scope();
    xgrad::Variable<float> x = token_embedding_(ids);
    if (position_embedding_) x = (*position_embedding_)(x);
    const xgrad::ForwardContext<float> context{.mask = xgrad::padding_mask(ids, pad_id_)};
    for (const xgrad::TransformerBlock<float>& layer : layers_) x = layer(context, x);
    return (*token_head_)(x);
  }

 private:
  std::int64_t pad_id_;
  xgrad::Embedding<float> token_embedding_;
  std::optional<xgrad::LearnedPositionalEncoding<float>> position_embedding_;
  std::vector<xgrad::TransformerBlock<float>> layers_;
  std::optional<xgrad::Linear<float>> token_head_;
};

}  // namespace learn
