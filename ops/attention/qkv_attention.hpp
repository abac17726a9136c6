#pragma once

#include "attention.hpp"

namespace xgrad {

/// scaled_dot_product_attention of queries, keys and values that lie side by side, as one projection gives
/// them; they are not copied apart.
///
/// qkv (..., L, (H + 2 G) E): the columns of q (H E), those of k (G E), those of v (G E), with H = num_heads,
/// or 1 without heads, and G = num_kv_heads; y (..., L, H E). dqkv has the gradients of q, k and v side by
/// side. Throws ShapeError unless H + 2 G divides the last axis, and as scaled_dot_product_attention does.
template <class T>
Variable<T> qkv_attention(const Variable<T>& qkv,
                          const std::type_identity_t<AttentionMask<T>>& attn_mask = {},
                          AttentionOptions options = {});

namespace ops {

inline constexpr Op qkv_attention("qkv_attention", {"qkv", "attn_bias"},
                                  {"num_heads", "num_kv_heads", "scale", "is_causal", "window_left",
                                   "window_right", "first_query", "num_keys", "softcap", "dropout_p",
                                   "attn_mask"});

}  // namespace ops
}  // namespace xgrad
