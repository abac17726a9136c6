#include "encoder_layer.hpp"

#include "../detail/initial_layers.hpp"

namespace xgrad {
namespace {

constexpr const char* encoder_layer = "TransformerEncoderLayer";

constexpr NamedPart encoder_names[]{{BlockPart::attention, "self_attn"},
                                    {BlockPart::query, "W_Q"},
                                    {BlockPart::key, "W_K"},
                                    {BlockPart::value, "W_V"},
                                    {BlockPart::out, "out_proj"},
                                    {BlockPart::feed_forward, "feed_forward"},
                                    {BlockPart::up, "linear1"},
                                    {BlockPart::down, "linear2"},
                                    {BlockPart::attention_norm, "norm1"},
                                    {BlockPart::feed_forward_norm, "norm2"}};

}  // namespace

template <class T>
TransformerEncoderLayer<T>::TransformerEncoderLayer(const EncoderConfig& config)
    : TransformerBlock<T>(encoder_layer, detail::block_options(encoder_layer, config)) {
  detail::InitialAttention<T> source(config.initial);
  this->declare(encoder_names, source);
}

template <class T>
Variable<T> TransformerEncoderLayer<T>::operator()(const Variable<T>& x, const AttentionMask<T>& mask) const {
  return TransformerBlock<T>::operator()({.mask = mask}, x);
}

template <class T>
AttentionResult<T> TransformerEncoderLayer<T>::with_weights(const Variable<T>& x,
                                                            const AttentionMask<T>& mask) const {
  std::vector<Variable<T>> weights;
  Variable<T> output = TransformerBlock<T>::operator()({.mask = mask, .attentions = &weights}, x);
  return {std::move(output), std::move(weights.front())};
}

template class TransformerEncoderLayer<float>;
template class TransformerEncoderLayer<double>;

}  // namespace xgrad
