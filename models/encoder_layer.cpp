#include "encoder_layer.hpp"

#include "../ops/pointwise/dropout.hpp"
#include "detail/sizes.hpp"

namespace xgrad {

template <class T>
TransformerEncoderLayer<T>::TransformerEncoderLayer(const EncoderConfig& config)
    : Module<T>("TransformerEncoderLayer"),
      norm_first_(config.norm_first),
      dropout_(detail::checked_probability("TransformerEncoderLayer", "dropout", config.dropout)),
      self_attn_(this->child("self_attn", MultiHeadAttention<T>(config.d_model, config.heads,
                                                                {.bias = config.bias,
                                                                 .dropout = config.dropout,
                                                                 .is_causal = config.is_causal,
                                                                 .initial = config.initial}))),
      feed_forward_(this->child(
          "feed_forward", FeedForward<T>(config.d_model, config.d_ff, config.activation, config.dropout))),
      norm1_(this->child("norm1", LayerNorm<T>(config.d_model, config.eps))),
      norm2_(this->child("norm2", LayerNorm<T>(config.d_model, config.eps))) {}

template <class T>
template <class Attend>
Variable<T> TransformerEncoderLayer<T>::forward(const Variable<T>& x, Attend&& attend) const {
  const auto scope = this->scope();
  const auto drop = [this](const Variable<T>& y) {
    return detail::dropout_if_training(y, dropout_, this->training());
  };
  Variable<T> z;
  if (norm_first_) {
    const Variable<T> y = x + drop(attend(norm1_(x)));
    z = y + drop(feed_forward_(norm2_(y)));
  } else {
    const Variable<T> y = norm1_(drop(attend(x)), x);
    z = norm2_(drop(feed_forward_(y)), y);
  }
  return z;
}

template <class T>
Variable<T> TransformerEncoderLayer<T>::operator()(const Variable<T>& x, const AttentionMask<T>& mask) const {
  return forward(x, [&](const Variable<T>& input) { return self_attn_(input, mask); });
}

template <class T>
AttentionResult<T> TransformerEncoderLayer<T>::with_weights(const Variable<T>& x,
                                                            const AttentionMask<T>& mask) const {
  Variable<T> weights;
  Variable<T> output = forward(x, [&](const Variable<T>& input) {
    AttentionResult<T> result = self_attn_.with_weights(input, mask);
    weights = std::move(result.weights);
    return std::move(result.output);
  });
  return {std::move(output), std::move(weights)};
}

template class TransformerEncoderLayer<float>;
template class TransformerEncoderLayer<double>;

}  // namespace xgrad
