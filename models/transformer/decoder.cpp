#include "decoder.hpp"

#include "../detail/layer_stack.hpp"
#include "../detail/sizes.hpp"

namespace xgrad {

template <class T>
TransformerDecoder<T>::TransformerDecoder(const DecoderConfig& config) : Module<T>("TransformerDecoder") {
  detail::checked_size("TransformerDecoder", "layers", config.layers);
  layers_ = detail::layer_stack(config.layers, InitialWeights::pytorch, [&](std::size_t i) {
    return this->child("layers." + std::to_string(i), TransformerDecoderLayer<T>(config));
  });
  if (config.last_norm.value_or(config.norm_first))
    norm_ = this->child("norm", LayerNorm<T>(config.d_model, config.eps));
}

template <class T>
Variable<T> TransformerDecoder<T>::operator()(const Variable<T>& x, const Variable<T>& memory,
                                              const AttentionMask<T>& mask,
                                              const AttentionMask<T>& memory_mask) const {
  const auto scope = this->scope();
  Variable<T> y = x;
  for (const TransformerDecoderLayer<T>& layer : layers_) y = layer(y, memory, mask, memory_mask);
  return norm_ ? (*norm_)(y) : y;
}

template <class T>
DecoderResult<T> TransformerDecoder<T>::with_weights(const Variable<T>& x, const Variable<T>& memory,
                                                     const AttentionMask<T>& mask,
                                                     const AttentionMask<T>& memory_mask) const {
  const auto scope = this->scope();
  DecoderResult<T> result{x, {}, {}};
  for (const TransformerDecoderLayer<T>& layer : layers_) {
    DecoderLayerResult<T> step = layer.with_weights(result.output, memory, mask, memory_mask);
    result.output = std::move(step.output);
    result.weights.push_back(std::move(step.weights));
    result.memory_weights.push_back(std::move(step.memory_weights));
  }
  if (norm_) result.output = (*norm_)(result.output);
  return result;
}

template class TransformerDecoder<float>;
template class TransformerDecoder<double>;

}  // namespace xgrad
