#pragma once

#include "../ops/attention.hpp"
#include "feed_forward.hpp"

// PyTorch's attention and encoder layer as functions of PyTorch's weights: those of q, k and v lie in one
// array.

namespace xgrad {

/// The parameters of torch.nn.MultiheadAttention, for E features.
template <class T>
struct MultiheadAttentionWeights {
  Variable<T> in_proj_weight;   ///< (3 E, E): the rows of q, of k, of v
  Variable<T> in_proj_bias;     ///< (3 E)
  Variable<T> out_proj_weight;  ///< (E, E)
  Variable<T> out_proj_bias;    ///< (E)
};

/// Who may not be attended to; true blocks, as in PyTorch.
struct AttentionPadding {
  std::optional<Mask> key_padding_mask = {};  ///< (N, S): keys that count for nothing
  std::optional<Mask> attn_mask = {};         ///< (L, S): keys that a query may not see
};

/// out_proj(heads joined), where head i attends with the i-th block of E / num_heads columns of the projected
/// query (N, L, E), key and value (N, S, E); the result is (N, L, E). A query whose keys are all blocked gets
/// zeros for its heads. Throws ShapeError for shapes that do not fit, GraphError for an undefined parameter,
/// ValueError unless num_heads divides E.
/// https://pytorch.org/docs/stable/generated/torch.nn.MultiheadAttention.html (batch_first)
template <class T>
Variable<T> multi_head_attention(const Variable<T>& query, const Variable<T>& key, const Variable<T>& value,
                                 const MultiheadAttentionWeights<T>& weights, std::size_t num_heads,
                                 const AttentionPadding& padding = {});

/// The parameters of torch.nn.TransformerEncoderLayer, for E features and F inner ones.
template <class T>
struct TransformerEncoderLayerWeights {
  MultiheadAttentionWeights<T> self_attn;
  Variable<T> linear1_weight, linear1_bias;  ///< (F, E), (F)
  Variable<T> linear2_weight, linear2_bias;  ///< (E, F), (E)
  Variable<T> norm1_weight, norm1_bias;      ///< (E)
  Variable<T> norm2_weight, norm2_bias;      ///< (E)
};

struct TransformerEncoderLayerOptions {
  std::size_t num_heads = 1;
  Activation activation = Activation::relu;
  bool norm_first = false;
  double eps = 1e-5;  ///< of both layer norms
};

/// x = norm1(src + attention(src)), y = norm2(x + linear2(activation(linear1(x)))); with norm_first the norms
/// come before attention and linear1 instead. src and y (N, L, E). Throws as multi_head_attention does.
/// https://pytorch.org/docs/stable/generated/torch.nn.TransformerEncoderLayer.html (batch_first, without
/// dropout)
template <class T>
Variable<T> transformer_encoder_layer(const Variable<T>& src,
                                      const TransformerEncoderLayerWeights<T>& weights,
                                      TransformerEncoderLayerOptions options = {},
                                      const AttentionPadding& padding = {});

}  // namespace xgrad
