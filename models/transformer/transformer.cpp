#include "transformer.hpp"

#include "../../base/random.hpp"
#include "../detail/xavier.hpp"

namespace xgrad {
namespace {

EncoderConfig encoder_of(const TransformerConfig& config) {
  return {.d_model = config.d_model,
          .heads = config.heads,
          .d_ff = config.d_ff,
          .layers = config.encoder_layers,
          .dropout = config.dropout,
          .activation = config.activation,
          .norm_first = config.norm_first,
          .bias = config.bias,
          .eps = config.eps,
          .last_norm = true,
          .initial = InitialWeights::pytorch};
}

DecoderConfig decoder_of(const TransformerConfig& config) {
  return {.d_model = config.d_model,
          .heads = config.heads,
          .d_ff = config.d_ff,
          .layers = config.decoder_layers,
          .dropout = config.dropout,
          .activation = config.activation,
          .norm_first = config.norm_first,
          .bias = config.bias,
          .eps = config.eps,
          .is_causal = config.is_causal,
          .last_norm = true};
}

/// Whether this is a part of PyTorch's in_proj_weight.
bool is_of_in_proj(const std::string& name) {
  return name.ends_with("W_Q.weight") || name.ends_with("W_K.weight") || name.ends_with("W_V.weight");
}

}  // namespace

template <class T>
Transformer<T>::Transformer(const TransformerConfig& config)
    : Module<T>("Transformer"),
      encoder_(this->child("encoder", TransformerEncoder<T>(encoder_of(config)))),
      decoder_(this->child("decoder", TransformerDecoder<T>(decoder_of(config)))) {
  for (const auto& [name, parameter] : this->named_parameters()) {
    if (parameter.dimension() < 2) continue;
    const Shape shape = parameter.shape();
    const double bound = detail::xavier_bound(shape[1], is_of_in_proj(name) ? 3 * shape[0] : shape[0]);
    parameter.assign(uniform<T>({shape[0], shape[1]}, -bound, bound));
  }
}

template <class T>
Variable<T> Transformer<T>::operator()(const Variable<T>& source, const Variable<T>& target,
                                       const TransformerMasks<T>& masks) const {
  const auto scope = this->scope();
  const Variable<T> memory = encoder_(source, masks.source);
  return decoder_(target, memory, masks.target, masks.memory);
}

template class Transformer<float>;
template class Transformer<double>;

}  // namespace xgrad
