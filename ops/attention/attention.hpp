#pragma once

#include <optional>

#include "../../base/detail/by_name.hpp"
#include "../../graph/op.hpp"
#include "attention_mask.hpp"

namespace xgrad {

struct AttentionOptions {
  detail::ByName by_name = {};
  double dropout_p = 0;              ///< dropout of the attention weights; 0 except in training
  bool is_causal = false;            ///< query i attends to the keys j <= first_query + i only
  std::optional<double> scale = {};  ///< 1 / sqrt(E) if absent
  std::size_t num_heads = 0;         ///< number of heads in the last axes; 0: one head without a head axis
  std::size_t num_kv_heads = 0;      ///< number of heads of k and v; 0: num_heads
  /// Sliding window: query i attends to the keys from first_query + i - window_left to first_query + i +
  /// window_right only; no limit if absent.
  std::optional<std::size_t> window_left = {}, window_right = {};
  /// Place of the first query among the keys, for is_causal and the window: where q is the rows of a sequence
  /// whose earlier keys are kept from the steps before.
  std::size_t first_query = 0;
  /// Only so many of the first rows of k and v are keys, as in a buffer that is being filled; all if absent.
  std::optional<std::size_t> num_keys = {};
  /// A scaled score s becomes softcap tanh(s / softcap) before the mask (Gemma 2, arXiv:2408.00118).
  std::optional<double> softcap = {};
};

/// y = dropout(softmax(cap(q k^T scale) + mask)) v (Vaswani et al. 2017, arXiv:1706.03762).
///
/// q (..., L, H E), k (..., S, G E), v (..., S, G Ev), y (..., L, H Ev), with H = num_heads and G =
/// num_kv_heads, which divides H: a head is a block of columns, and head h of q attends to head h / (H / G)
/// of k and v (Ainslie et al. 2023, arXiv:2305.13245); heads are not copied. Keys outside of the window
/// (Beltagy et al. 2020, arXiv:2004.05150) or behind a causal query are hidden, and blocks of them are not
/// computed. With num_keys, S is the number of keys, and the rows behind them are not read: their gradients
/// are 0. A query that may attend to no key has zero output and zero gradients. With w the attention weights
/// and m the dropout mask (0 or 1 / (1 - p), drawn from the default generator): dv = (m w)^T dy, ds = w (dw -
/// sum(dw w)) with dw = m dy v^T, dq = scale dr k, dk = scale dr^T q with dr = ds (1 - tanh(s / softcap)^2),
/// or ds without softcap; the gradient of a bias is ds, summed over broadcast axes. Throws ShapeError for
/// incompatible shapes, ValueError for dropout_p outside [0, 1], for a num_kv_heads that does not divide
/// num_heads, for a num_keys of more rows than there are, and for a softcap that is not above 0.
/// https://pytorch.org/docs/stable/generated/torch.nn.functional.scaled_dot_product_attention.html
template <class T>
Variable<T> scaled_dot_product_attention(const Variable<T>& q, const Variable<T>& k, const Variable<T>& v,
                                         const std::type_identity_t<AttentionMask<T>>& attn_mask = {},
                                         AttentionOptions options = {});

namespace ops {

inline constexpr Op scaled_dot_product_attention("scaled_dot_product_attention", {"q", "k", "v", "attn_bias"},
                                                 {"num_heads", "num_kv_heads", "scale", "is_causal",
                                                  "window_left", "window_right", "first_query", "num_keys",
                                                  "softcap", "dropout_p", "attn_mask"});

}  // namespace ops
}  // namespace xgrad
