#include "decoder_layer.hpp"

#include "../ops/pointwise/dropout.hpp"
#include "detail/sizes.hpp"

namespace xgrad {
namespace {

MultiHeadAttentionOptions attention_of(const DecoderConfig& config, bool is_causal) {
  return {.bias = config.bias,
          .dropout = config.dropout,
          .is_causal = is_causal,
          .initial = InitialWeights::pytorch};
}

}  // namespace

template <class T>
TransformerDecoderLayer<T>::TransformerDecoderLayer(const DecoderConfig& config)
    : Module<T>("TransformerDecoderLayer"),
      norm_first_(config.norm_first),
      dropout_(detail::checked_probability("TransformerDecoderLayer", "dropout", config.dropout)),
      self_attn_(this->child("self_attn", MultiHeadAttention<T>(config.d_model, config.heads,
                                                                attention_of(config, config.is_causal)))),
      multihead_attn_(this->child("multihead_attn", MultiHeadAttention<T>(config.d_model, config.heads,
                                                                          attention_of(config, false)))),
      feed_forward_(this->child(
          "feed_forward", FeedForward<T>(config.d_model, config.d_ff, config.activation, config.dropout))),
      norm1_(this->child("norm1", LayerNorm<T>(config.d_model, config.eps))),
      norm2_(this->child("norm2", LayerNorm<T>(config.d_model, config.eps))),
      norm3_(this->child("norm3", LayerNorm<T>(config.d_model, config.eps))) {}

template <class T>
template <class Attend, class AttendToMemory>
Variable<T> TransformerDecoderLayer<T>::forward(const Variable<T>& x, Attend&& attend,
                                                AttendToMemory&& attend_to_memory) const {
  const auto scope = this->scope();
  const auto drop = [this](const Variable<T>& y) {
    return detail::dropout_if_training(y, dropout_, this->training());
  };
  Variable<T> z;
  if (norm_first_) {
    const Variable<T> u = x + drop(attend(norm1_(x)));
    const Variable<T> y = u + drop(attend_to_memory(norm2_(u)));
    z = y + drop(feed_forward_(norm3_(y)));
  } else {
    const Variable<T> u = norm1_(drop(attend(x)), x);
    const Variable<T> y = norm2_(drop(attend_to_memory(u)), u);
    z = norm3_(drop(feed_forward_(y)), y);
  }
  return z;
}

template <class T>
Variable<T> TransformerDecoderLayer<T>::operator()(const Variable<T>& x, const Variable<T>& memory,
                                                   const AttentionMask<T>& mask,
                                                   const AttentionMask<T>& memory_mask) const {
  return forward(
      x, [&](const Variable<T>& input) { return self_attn_(input, mask); },
      [&](const Variable<T>& input) { return multihead_attn_(input, memory, memory, memory_mask); });
}

template <class T>
DecoderLayerResult<T> TransformerDecoderLayer<T>::with_weights(const Variable<T>& x,
                                                               const Variable<T>& memory,
                                                               const AttentionMask<T>& mask,
                                                               const AttentionMask<T>& memory_mask) const {
  DecoderLayerResult<T> result;
  const auto keep = [](AttentionResult<T> attended, Variable<T>& weights) {
    weights = std::move(attended.weights);
    return std::move(attended.output);
  };
  result.output = forward(
      x, [&](const Variable<T>& input) { return keep(self_attn_.with_weights(input, mask), result.weights); },
      [&](const Variable<T>& input) {
        return keep(multihead_attn_.with_weights(input, memory, memory, memory_mask), result.memory_weights);
      });
  return result;
}

template class TransformerDecoderLayer<float>;
template class TransformerDecoderLayer<double>;

}  // namespace xgrad
