#pragma once

#include "../../ops/attention/attention_with_weights.hpp"
#include "../layers/linear.hpp"

namespace xgrad {

/// Attention with one head, without biases and output projection: softmax(q k^T / sqrt(d_model)) v with q, k,
/// v = W_q(x), W_k(x), W_v(x) (Vaswani et al. 2017, arXiv:1706.03762, section 3.2.1).
///
/// x and y (..., seq, d_model). `row_dim` and `col_dim` are the token and feature axes of x: 0 and 1 without
/// a batch axis, 1 and 2 (or -2 and -1) with one. Throws ShapeError unless these are x's last two.
template <class T>
class SelfAttention : public Module<T> {
 public:
  explicit SelfAttention(std::size_t d_model, Int row_dim = 0, Int col_dim = 1);

  Variable<T> operator()(const Variable<T>& x) const;

  /// Forward that also returns the attention weights (..., seq, seq).
  AttentionResult<T> with_weights(const Variable<T>& x) const;

 private:
  void check(const Variable<T>& x) const;

  std::ptrdiff_t row_dim_, col_dim_;
  Linear<T> W_q_, W_k_, W_v_;
};

}  // namespace xgrad
