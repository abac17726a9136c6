#pragma once

#include "attention.hpp"

namespace xgrad {

template <class T>
struct [[nodiscard]] AttentionResult {
  Variable<T> output;   ///< (..., L, H Ev)
  Variable<T> weights;  ///< (..., L, S), or (..., H, L, S) with num_heads; after dropout
};

/// scaled_dot_product_attention composed of matmul, masked_fill and softmax, which also returns the attention
/// weights. Throws as scaled_dot_product_attention does.
template <class T>
AttentionResult<T> attention_with_weights(const Variable<T>& q, const Variable<T>& k, const Variable<T>& v,
                                          const std::type_identity_t<AttentionMask<T>>& attn_mask = {},
                                          AttentionOptions options = {});

}  // namespace xgrad
