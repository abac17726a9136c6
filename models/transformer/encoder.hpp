#pragma once

#include <optional>

#include "encoder_layer.hpp"

namespace xgrad {

/// Attention mask that excludes padding: false where an id is pad_id. ids (batch, seq), the mask (batch, 1,
/// 1, seq): it broadcasts over heads and queries. Throws ShapeError for ids of another rank.
[[nodiscard]] Mask padding_mask(const Ids& ids, std::int64_t pad_id);
/// Ids are integers: xt::cast<std::int64_t>(ids).
template <detail::NoIds E>
Mask padding_mask(const E& ids, std::int64_t pad_id) = delete;

/// Result of with_weights().
template <class T>
struct [[nodiscard]] EncoderResult {
  Variable<T> output;                ///< (batch, seq, d_model)
  std::vector<Variable<T>> weights;  ///< of each layer, (batch, heads, seq, seq)
};

/// A stack of encoder layers, `layers.0`, `layers.1`, ...; with norm_first, or last_norm, followed by a last
/// `norm`.
///
/// x and y (batch, seq, d_model); the mask broadcasts to (batch, heads, seq, seq). Throws ValueError for an
/// invalid config. https://pytorch.org/docs/stable/generated/torch.nn.TransformerEncoder.html
template <class T>
class TransformerEncoder : public Module<T> {
 public:
  explicit TransformerEncoder(const EncoderConfig& config);

  Variable<T> operator()(const Variable<T>& x, const AttentionMask<T>& mask = {}) const;

  /// In a context of blocks, with caches for example, whose slots are the numbers of the layers.
  Variable<T> operator()(ForwardContext<T> context, const Variable<T>& x) const;

  /// Forward that also returns every layer's attention weights.
  EncoderResult<T> with_weights(const Variable<T>& x, const AttentionMask<T>& mask = {}) const;

 private:
  std::vector<TransformerEncoderLayer<T>> layers_;
  std::optional<LayerNorm<T>> norm_;
};

}  // namespace xgrad
