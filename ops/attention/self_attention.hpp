#pragma once

#include "../../graph/op.hpp"
#include "../product/linear.hpp"
#include "attention.hpp"

namespace xgrad {

/// y = scaled_dot_product_attention(linear(x, q), linear(x, k), linear(x, v), attn_mask, options), as one
/// node of the graph: the three projections share x and its gradient. With a weight of bfloat16 numbers it is
/// these four ops.
///
/// x (..., L, in), the weights of q (H E, in), k (G E, in) and v (G Ev, in), y (..., L, H Ev). With dq, dk
/// and dv the gradients of the projections: dx = the sum of dq weight over the three, dweight = dq^T x, dbias
/// = the sum of dq's rows. Weights of 8-bit integers have no gradients: throws ValueError where the op would
/// be recorded. Throws ShapeError for incompatible shapes.
template <class T>
Variable<T> self_attention(const Variable<T>& x, const Projection<std::type_identity_t<T>>& q,
                           const Projection<std::type_identity_t<T>>& k,
                           const Projection<std::type_identity_t<T>>& v,
                           const std::type_identity_t<AttentionMask<T>>& attn_mask = {},
                           AttentionOptions options = {});

namespace ops {

inline constexpr Op self_attention(
    "self_attention", {"x", "q_weight", "k_weight", "v_weight", "q_bias", "k_bias", "v_bias", "attn_bias"},
    {"num_heads", "num_kv_heads", "scale", "is_causal", "window_left", "window_right", "first_query",
     "num_keys", "softcap", "dropout_p", "attn_mask", "lengths"});

/// self_attention with a weight of 8-bit integers.
inline constexpr Op int8_self_attention("int8_self_attention", {"x", "attn_bias"},
                                        {"num_heads", "num_kv_heads", "scale", "is_causal", "window_left",
                                         "window_right", "first_query", "num_keys", "softcap", "dropout_p",
                                         "attn_mask", "lengths"});

}  // namespace ops
}  // namespace xgrad
