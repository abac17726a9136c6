#pragma once

#include "decoder_layer.hpp"

namespace xgrad {

/// Result of TransformerDecoder::with_weights().
template <class T>
struct [[nodiscard]] DecoderResult {
  Variable<T> output;                       ///< (batch, seq, d_model)
  std::vector<Variable<T>> weights;         ///< of each layer, (batch, heads, seq, seq)
  std::vector<Variable<T>> memory_weights;  ///< of each layer, (batch, heads, seq, memory's seq)
};

/// A stack of decoder layers, `layers.0`, `layers.1`, ...; with norm_first, or last_norm, followed by a last
/// `norm`. As in PyTorch all layers begin with the same numbers.
///
/// x and y (batch, seq, d_model), memory (batch, memory's seq, d_model); masks as for a layer. Throws
/// ValueError for an invalid config.
/// https://pytorch.org/docs/stable/generated/torch.nn.TransformerDecoder.html
template <class T>
class TransformerDecoder : public Module<T> {
 public:
  explicit TransformerDecoder(const DecoderConfig& config);

  Variable<T> operator()(const Variable<T>& x, const Variable<T>& memory, const AttentionMask<T>& mask = {},
                         const AttentionMask<T>& memory_mask = {}) const;

  /// Forward that also returns every layer's attention weights.
  DecoderResult<T> with_weights(const Variable<T>& x, const Variable<T>& memory,
                                const AttentionMask<T>& mask = {},
                                const AttentionMask<T>& memory_mask = {}) const;

 private:
  std::vector<TransformerDecoderLayer<T>> layers_;
  std::optional<LayerNorm<T>> norm_;
};

}  // namespace xgrad
