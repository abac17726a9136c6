#pragma once

#include <optional>

#include "../../base/detail/by_name.hpp"
#include "../../graph/op.hpp"
#include "attention_mask.hpp"

namespace xgrad {

struct AttentionOptions {
  detail::ByName by_name = {};
  double dropout_p = 0;              ///< dropout of the attention weights; 0 except in training
  bool is_causal = false;            ///< query i attends to the keys j <= i only
  std::optional<double> scale = {};  ///< 1 / sqrt(E) if absent
  std::size_t num_heads = 0;         ///< number of heads in the last axes; 0: one head without a head axis
  std::size_t num_kv_heads = 0;      ///< number of heads of k and v; 0: num_heads
  /// Sliding window: query i attends to the keys i - window_left to i + window_right only; no limit if
  /// absent.
  std::optional<std::size_t> window_left = {}, window_right = {};
};

/// y = dropout(softmax(q k^T scale + mask)) v (Vaswani et al. 2017, arXiv:1706.03762).
///
/// q (..., L, H E), k (..., S, G E), v (..., S, G Ev), y (..., L, H Ev), with H = num_heads and G =
/// num_kv_heads, which divides H: a head is a block of columns, and head h of q attends to head h / (H / G)
/// of k and v (Ainslie et al. 2023, arXiv:2305.13245); heads are not copied. Keys outside of the window
/// (Beltagy et al. 2020, arXiv:2004.05150) are hidden, and blocks of them are not computed. A query that may
/// attend to no key has zero output and zero gradients. With w the attention weights and m the dropout mask
/// (0 or 1 / (1 - p), drawn from the default generator): dv = (m w)^T dy, ds = w (dw - sum(dw w)) with dw = m
/// dy v^T, dq = scale ds k, dk = scale ds^T q; the gradient of a bias is ds, summed over broadcast axes.
/// Throws ShapeError for incompatible shapes, ValueError for dropout_p outside [0, 1] and for a num_kv_heads
/// that does not divide num_heads.
/// https://pytorch.org/docs/stable/generated/torch.nn.functional.scaled_dot_product_attention.html
template <class T>
Variable<T> scaled_dot_product_attention(const Variable<T>& q, const Variable<T>& k, const Variable<T>& v,
                                         const std::type_identity_t<AttentionMask<T>>& attn_mask = {},
                                         AttentionOptions options = {});

namespace ops {

inline constexpr Op scaled_dot_product_attention("scaled_dot_product_attention", {"q", "k", "v", "attn_bias"},
                                                 {"num_heads", "num_kv_heads", "scale", "is_causal",
                                                  "window_left", "window_right", "dropout_p", "attn_mask"});

}  // namespace ops
}  // namespace xgrad
