#pragma once

#include "../../base/detail/by_name.hpp"
#include "../../ops/attention/attention_with_weights.hpp"
#include "../layers/linear.hpp"

namespace xgrad {

/// How the weights of attention, and of stacks of its layers, are initialized.
enum class InitialWeights {
  linear,  ///< each projection as a Linear, each layer of a stack with numbers of its own
  /// As PyTorch's nn.MultiheadAttention: W_Q, W_K and W_V uniformly in [-a, a) with a = sqrt(6 / (4 d_model))
  /// (Glorot and Bengio 2010), out_proj as a Linear, all biases 0; all layers of a stack as its first.
  pytorch,
};

namespace detail {

template <class T>
struct AttentionProjections {
  Linear<T> q, k, v, out;
};

/// Newly initialized, (size, size) each.
template <class T>
AttentionProjections<T> attention_projections(std::size_t size, bool bias, InitialWeights initial);

}  // namespace detail

struct MultiHeadAttentionOptions {
  detail::ByName by_name = {};
  bool bias = false;       ///< biases of the four projections
  double dropout = 0;      ///< of the attention weights
  bool is_causal = false;  ///< query i attends to the keys j <= i only
  InitialWeights initial = InitialWeights::linear;
};

/// out_proj(cat(head_1, ..., head_h)) with head_i = softmax(q_i k_i^T / sqrt(d_model / heads)) v_i, where
/// q_i, k_i, v_i are the i-th blocks of columns of W_Q(q), W_K(k), W_V(v) (Vaswani et al. 2017,
/// arXiv:1706.03762, section 3.2.2).
///
/// q (batch, L, d_model), k and v (batch, S, d_model); the mask broadcasts to (batch, heads, L, S), such as
/// padding_mask()'s. Throws ValueError "MultiHeadAttention: d_model must be divisible by heads, got 6 and 4",
/// ShapeError for incompatible shapes, and for a mask that AttentionMask calls ambiguous.
/// https://pytorch.org/docs/stable/generated/torch.nn.MultiheadAttention.html
template <class T>
class MultiHeadAttention : public Module<T> {
 public:
  MultiHeadAttention(std::size_t d_model, std::size_t heads, MultiHeadAttentionOptions options = {});

  /// Self-attention of x.
  Variable<T> operator()(const Variable<T>& x, const AttentionMask<T>& mask = {}) const;
  /// Cross-attention of the queries q to other keys and values.
  Variable<T> operator()(const Variable<T>& q, const Variable<T>& k, const Variable<T>& v,
                         const AttentionMask<T>& mask = {}) const;

  /// Forward that also returns the attention weights (batch, heads, L, S).
  AttentionResult<T> with_weights(const Variable<T>& x, const AttentionMask<T>& mask = {}) const;
  AttentionResult<T> with_weights(const Variable<T>& q, const Variable<T>& k, const Variable<T>& v,
                                  const AttentionMask<T>& mask = {}) const;

 private:
  MultiHeadAttention(detail::AttentionProjections<T> projections, std::size_t heads,
                     const MultiHeadAttentionOptions& options);
  AttentionOptions attention_options() const;

  std::size_t heads_;
  double dropout_;
  bool is_causal_;
  Linear<T> W_Q_, W_K_, W_V_, out_proj_;
};

}  // namespace xgrad
