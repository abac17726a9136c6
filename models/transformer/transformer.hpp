#pragma once

#include "decoder.hpp"
#include "encoder.hpp"

namespace xgrad {

/// Configuration of a Transformer; the first three fields are required.
struct TransformerConfig {
  std::size_t d_model = 0;  ///< width of a token's vector
  std::size_t heads = 0;    ///< must divide d_model
  std::size_t d_ff = 0;     ///< inner width of the feed-forward networks
  std::size_t encoder_layers = 6, decoder_layers = 6;
  double dropout = 0;  ///< of attention weights, inner activations and residual branches
  Activation activation = Activation::relu;
  bool norm_first = false;  ///< pre-norm: normalize the inputs of attention and feed-forward
  bool bias = true;   ///< biases of the attention's projections; linear1, linear2 and norms always have them
  double eps = 1e-5;  ///< of the norms
  bool is_causal = true;  ///< a token of the target attends to itself and those before it only
};

/// The masks of a Transformer's three kinds of attention, and what they broadcast to.
template <class T>
struct TransformerMasks {
  detail::ByName by_name = {};
  AttentionMask<T> source = {};  ///< (batch, heads, source's seq, source's seq)
  AttentionMask<T> target = {};  ///< (batch, heads, target's seq, target's seq)
  AttentionMask<T> memory = {};  ///< (batch, heads, target's seq, source's seq)
};

/// decoder(target, encoder(source)), each with a norm behind its last layer (Vaswani et al. 2017,
/// arXiv:1706.03762).
///
/// source (batch, source's seq, d_model), target and y (batch, target's seq, d_model). Matrices are
/// initialized uniformly in [-a, a) with a = sqrt(6 / (in + out)), where in_proj of W_Q, W_K and W_V counts
/// as one, in PyTorch's order of draws. Throws ValueError for an invalid config.
/// https://pytorch.org/docs/stable/generated/torch.nn.Transformer.html
template <class T>
class Transformer : public Module<T> {
 public:
  explicit Transformer(const TransformerConfig& config);

  Variable<T> operator()(const Variable<T>& source, const Variable<T>& target,
                         const TransformerMasks<T>& masks = {}) const;

  const TransformerEncoder<T>& encoder() const& { return encoder_; }
  TransformerEncoder<T> encoder() && { return encoder_; }
  const TransformerDecoder<T>& decoder() const& { return decoder_; }
  TransformerDecoder<T> decoder() && { return decoder_; }

 private:
  TransformerEncoder<T> encoder_;
  TransformerDecoder<T> decoder_;
};

}  // namespace xgrad
