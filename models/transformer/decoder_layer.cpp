#include "decoder_layer.hpp"

#include "../detail/initial_layers.hpp"

namespace xgrad {
namespace {

constexpr const char* decoder_layer = "TransformerDecoderLayer";

constexpr NamedPart decoder_names[]{{BlockPart::attention, "self_attn"},
                                    {BlockPart::query, "W_Q"},
                                    {BlockPart::key, "W_K"},
                                    {BlockPart::value, "W_V"},
                                    {BlockPart::out, "out_proj"},
                                    {BlockPart::memory_attention, "multihead_attn"},
                                    {BlockPart::memory_query, "W_Q"},
                                    {BlockPart::memory_key, "W_K"},
                                    {BlockPart::memory_value, "W_V"},
                                    {BlockPart::memory_out, "out_proj"},
                                    {BlockPart::feed_forward, "feed_forward"},
                                    {BlockPart::up, "linear1"},
                                    {BlockPart::down, "linear2"},
                                    {BlockPart::attention_norm, "norm1"},
                                    {BlockPart::memory_norm, "norm2"},
                                    {BlockPart::feed_forward_norm, "norm3"}};

TransformerBlockOptions decoder_options(const DecoderConfig& config) {
  TransformerBlockOptions options = detail::block_options(decoder_layer, config);
  options.has_memory = true;
  return options;
}

}  // namespace

template <class T>
TransformerDecoderLayer<T>::TransformerDecoderLayer(const DecoderConfig& config)
    : TransformerBlock<T>(decoder_layer, decoder_options(config)) {
  detail::InitialAttention<T> source(InitialWeights::pytorch);
  this->declare(decoder_names, source);
}

template <class T>
Variable<T> TransformerDecoderLayer<T>::operator()(const Variable<T>& x, const Variable<T>& memory,
                                                   const AttentionMask<T>& mask,
                                                   const AttentionMask<T>& memory_mask) const {
  return TransformerBlock<T>::operator()({.mask = mask, .memory = memory, .memory_mask = memory_mask}, x);
}

template <class T>
DecoderLayerResult<T> TransformerDecoderLayer<T>::with_weights(const Variable<T>& x,
                                                               const Variable<T>& memory,
                                                               const AttentionMask<T>& mask,
                                                               const AttentionMask<T>& memory_mask) const {
  std::vector<Variable<T>> weights, memory_weights;
  Variable<T> output = TransformerBlock<T>::operator()({.mask = mask,
                                                        .memory = memory,
                                                        .memory_mask = memory_mask,
                                                        .attentions = &weights,
                                                        .memory_attentions = &memory_weights},
                                                       x);
  return {std::move(output), std::move(weights.front()), std::move(memory_weights.front())};
}

template class TransformerDecoderLayer<float>;
template class TransformerDecoderLayer<double>;

}  // namespace xgrad
