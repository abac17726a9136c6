#pragma once

#include <memory>
#include <optional>

#include "../graph/variable.hpp"

namespace xgrad {

/// Who may attend to whom: a bool array (true: may) or numbers added to the scores. It broadcasts to the
/// scores, (..., L, S) or (..., num_heads, L, S). An undefined Variable is no mask. Copies share the array.
template <class T>
class AttentionMask {
 public:
  AttentionMask() = default;  ///< everybody to everybody
  AttentionMask(Mask allowed) : allowed_(std::make_shared<const Mask>(std::move(allowed))) {}
  AttentionMask(std::shared_ptr<const Mask> allowed) : allowed_(std::move(allowed)) {}
  AttentionMask(Variable<T> bias) : bias_(std::move(bias)) {}

  const Mask* allowed() const { return allowed_.get(); }
  const std::shared_ptr<const Mask>& shared_allowed() const { return allowed_; }
  const Variable<T>& bias() const { return bias_; }

 private:
  std::shared_ptr<const Mask> allowed_;
  Variable<T> bias_;
};

struct AttentionOptions {
  double dropout_p = 0;              ///< dropout of the attention weights; 0 except in training
  bool is_causal = false;            ///< query i attends to the keys j <= i only
  std::optional<double> scale = {};  ///< 1 / sqrt(E) if absent
  std::size_t num_heads = 0;  ///< heads side by side in the last axes; 0: one, without an axis of its own
};

/// y = softmax(q k^T scale + mask) v (Vaswani et al. 2017, arXiv:1706.03762).
///
/// q (..., L, H E), k (..., S, H E), v (..., S, H Ev), y (..., L, H Ev), with H = num_heads: a head is a
/// block of columns, and heads are never copied apart. A query that may attend to nothing gets zeros and zero
/// gradients. With w the attention weights: dv = w^T dy, ds = w (dw - sum(dw w)) with dw = dy v^T, dq = scale
/// ds k, dk = scale ds^T q. Throws ShapeError for shapes that do not fit.
/// https://pytorch.org/docs/stable/generated/torch.nn.functional.scaled_dot_product_attention.html
template <class T>
Variable<T> scaled_dot_product_attention(const Variable<T>& q, const Variable<T>& k, const Variable<T>& v,
                                         const std::type_identity_t<AttentionMask<T>>& attn_mask = {},
                                         AttentionOptions options = {});

/// What makes the queries, the keys or the values of x: x weight^T + bias, with weight (out, in) and bias
/// (out) or undefined.
template <class T>
struct Projection {
  Variable<T> weight, bias;
};

/// scaled_dot_product_attention(linear(x, q), linear(x, k), linear(x, v), attn_mask, options), as one node of
/// the graph: the three projections share x, and the gradients that come back to it.
///
/// x (..., L, in), the weights of q and k (H E, in), that of v (H Ev, in), y (..., L, H Ev). Throws
/// ShapeError for shapes that do not fit.
template <class T>
Variable<T> self_attention(const Variable<T>& x, const Projection<std::type_identity_t<T>>& q,
                           const Projection<std::type_identity_t<T>>& k,
                           const Projection<std::type_identity_t<T>>& v,
                           const std::type_identity_t<AttentionMask<T>>& attn_mask = {},
                           AttentionOptions options = {});

template <class T>
struct AttentionResult {
  Variable<T> output;   ///< (..., L, H Ev)
  Variable<T> weights;  ///< (..., L, S), or (..., H, L, S) with num_heads
};

/// The same composed of matmul, masked_fill and softmax, with the attention weights as a result of their own.
template <class T>
AttentionResult<T> attention_with_weights(const Variable<T>& q, const Variable<T>& k, const Variable<T>& v,
                                          const std::type_identity_t<AttentionMask<T>>& attn_mask = {},
                                          AttentionOptions options = {});

}  // namespace xgrad
