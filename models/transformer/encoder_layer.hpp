#pragma once

#include <optional>

#include "../attention/multi_head_attention.hpp"
#include "../transformer_block.hpp"

namespace xgrad {

/// Configuration of an encoder; the first three fields are required.
struct EncoderConfig {
  std::size_t d_model = 0;  ///< width of a token's vector
  std::size_t heads = 0;    ///< must divide d_model
  std::size_t d_ff = 0;     ///< inner width of the feed-forward networks
  std::size_t layers = 1;
  double dropout = 0;  ///< of attention weights, inner activations and residual branches
  Activation activation = Activation::relu;
  bool norm_first = false;  ///< pre-norm: normalize the inputs of attention and feed-forward
  bool bias = false;  ///< biases of the attention's projections; linear1, linear2 and norms always have them
  double eps = 1e-5;  ///< of the norms
  bool is_causal = false;              ///< a token attends to itself and those before it only, as in a GPT
  std::optional<bool> last_norm = {};  ///< a norm behind the last layer; if absent, with norm_first
  InitialWeights initial = InitialWeights::linear;
};

/// Attention and a feed-forward network, each with a residual connection. Post-norm (Vaswani et al. 2017,
/// arXiv:1706.03762): y = norm1(x + self_attn(x)), z = norm2(y + feed_forward(y)). Pre-norm (Xiong et al.
/// 2020, arXiv:2002.04745): y = x + self_attn(norm1(x)), z = y + feed_forward(norm2(y)).
///
/// x and z (batch, seq, d_model); the mask broadcasts to (batch, heads, seq, seq). Throws ValueError for an
/// invalid config. https://pytorch.org/docs/stable/generated/torch.nn.TransformerEncoderLayer.html
template <class T>
class TransformerEncoderLayer : public TransformerBlock<T> {
 public:
  explicit TransformerEncoderLayer(const EncoderConfig& config);

  Variable<T> operator()(const Variable<T>& x, const AttentionMask<T>& mask = {}) const;

  /// Forward that also returns the attention weights (batch, heads, seq, seq).
  AttentionResult<T> with_weights(const Variable<T>& x, const AttentionMask<T>& mask = {}) const;
};

}  // namespace xgrad
