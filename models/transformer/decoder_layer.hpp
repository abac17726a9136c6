#pragma once

#include <optional>

#include "../transformer_block.hpp"

namespace xgrad {

/// Configuration of a decoder; the first three fields are required.
struct DecoderConfig {
  std::size_t d_model = 0;  ///< width of a token's vector
  std::size_t heads = 0;    ///< must divide d_model
  std::size_t d_ff = 0;     ///< inner width of the feed-forward networks
  std::size_t layers = 1;
  double dropout = 0;  ///< of attention weights, inner activations and residual branches
  Activation activation = Activation::relu;
  bool norm_first = false;  ///< pre-norm: normalize the inputs of attention and feed-forward
  bool bias = true;   ///< biases of the attention's projections; linear1, linear2 and norms always have them
  double eps = 1e-5;  ///< of the norms
  bool is_causal = true;  ///< a token attends to itself and those before it only, beside what masks hide
  std::optional<bool> last_norm = {};  ///< a norm behind the last layer; if absent, with norm_first
};

/// Result of TransformerDecoderLayer::with_weights().
template <class T>
struct [[nodiscard]] DecoderLayerResult {
  Variable<T> output;          ///< (batch, seq, d_model)
  Variable<T> weights;         ///< (batch, heads, seq, seq)
  Variable<T> memory_weights;  ///< (batch, heads, seq, memory's seq)
};

/// Attention to the tokens before, attention to an encoder's output and a feed-forward network, each with a
/// residual connection. Post-norm (Vaswani et al. 2017, arXiv:1706.03762): u = norm1(x + self_attn(x)), y =
/// norm2(u + multihead_attn(u, memory)), z = norm3(y + feed_forward(y)). Pre-norm (Xiong et al. 2020,
/// arXiv:2002.04745): u = x + self_attn(norm1(x)), y = u + multihead_attn(norm2(u), memory), z = y +
/// feed_forward(norm3(y)).
///
/// x and z (batch, seq, d_model), memory (batch, memory's seq, d_model); the mask broadcasts to (batch,
/// heads, seq, seq), that of the memory to (batch, heads, seq, memory's seq). Initialized as
/// InitialWeights::pytorch says. Throws ValueError for an invalid config.
/// https://pytorch.org/docs/stable/generated/torch.nn.TransformerDecoderLayer.html
template <class T>
class TransformerDecoderLayer : public TransformerBlock<T> {
 public:
  explicit TransformerDecoderLayer(const DecoderConfig& config);

  Variable<T> operator()(const Variable<T>& x, const Variable<T>& memory, const AttentionMask<T>& mask = {},
                         const AttentionMask<T>& memory_mask = {}) const;

  /// Forward that also returns the attention weights.
  DecoderLayerResult<T> with_weights(const Variable<T>& x, const Variable<T>& memory,
                                     const AttentionMask<T>& mask = {},
                                     const AttentionMask<T>& memory_mask = {}) const;
};

}  // namespace xgrad
