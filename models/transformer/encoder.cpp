#include "encoder.hpp"

#include "../detail/layer_stack.hpp"
#include "../detail/sizes.hpp"

namespace xgrad {

Mask padding_mask(const Ids& ids, std::int64_t pad_id) {
  if (ids.dimension() != 2) {
    detail::fail<ShapeError>("padding_mask: ids must be (batch, seq), got ", ids.shape());
  }
  Mask allowed = Mask::from_shape({ids.shape(0), std::size_t{1}, std::size_t{1}, ids.shape(1)});
  std::transform(ids.storage().begin(), ids.storage().end(), allowed.storage().begin(),
                 [pad_id](std::int64_t id) { return id != pad_id; });
  return allowed;
}

template <class T>
TransformerEncoder<T>::TransformerEncoder(const EncoderConfig& config) : Module<T>("TransformerEncoder") {
  detail::checked_size("TransformerEncoder", "layers", config.layers);
  layers_ = detail::layer_stack(config.layers, config.initial, [&](std::size_t i) {
    return this->child("layers." + std::to_string(i), TransformerEncoderLayer<T>(config));
  });
  if (config.last_norm.value_or(config.norm_first))
    norm_ = this->child("norm", LayerNorm<T>(config.d_model, config.eps));
}

template <class T>
Variable<T> TransformerEncoder<T>::operator()(const Variable<T>& x, const AttentionMask<T>& mask) const {
  return (*this)(ForwardContext<T>{.mask = mask}, x);
}

template <class T>
Variable<T> TransformerEncoder<T>::operator()(ForwardContext<T> context, const Variable<T>& x) const {
  const auto scope = this->scope();
  Variable<T> y = x;
  for (const TransformerBlock<T>& layer : layers_) {
    y = layer(context, y);
    ++context.slot;
  }
  return norm_ ? (*norm_)(y) : y;
}

template <class T>
EncoderResult<T> TransformerEncoder<T>::with_weights(const Variable<T>& x,
                                                     const AttentionMask<T>& mask) const {
  const auto scope = this->scope();
  EncoderResult<T> result{x, {}};
  for (const TransformerEncoderLayer<T>& layer : layers_) {
    AttentionResult<T> step = layer.with_weights(result.output, mask);
    result.output = std::move(step.output);
    result.weights.push_back(std::move(step.weights));
  }
  if (norm_) result.output = (*norm_)(result.output);
  return result;
}

template class TransformerEncoder<float>;
template class TransformerEncoder<double>;

}  // namespace xgrad
