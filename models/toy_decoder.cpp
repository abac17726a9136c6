#include "toy_decoder.hpp"

#include "detail/sizes.hpp"
#include "detail/token_ids.hpp"

namespace xgrad {
namespace {

EncoderConfig causal(EncoderConfig config) {
  config.is_causal = true;
  return config;
}

}  // namespace

template <class T>
ToyDecoder<T>::ToyDecoder(const ToyDecoderConfig& config)
    : Module<T>("ToyDecoder"),
      config_{detail::checked_size("ToyDecoder", "vocab_size", config.vocab_size),
              detail::checked_size("ToyDecoder", "max_len", config.max_len), causal(config.layers)},
      token_embedding_(
          this->child("token_embedding", Embedding<T>(config.vocab_size, config.layers.d_model))),
      position_embedding_(this->child("position_embedding",
                                      LearnedPositionalEncoding<T>(config.max_len, config.layers.d_model))),
      layers_(this->child("layers", TransformerEncoder<T>(config_.layers))),
      token_head_(this->child("token_head", Linear<T>(config.layers.d_model, config.vocab_size))) {}

template <class T>
Variable<T> ToyDecoder<T>::embed(const Ids& ids) const {
  detail::check_token_ids("ToyDecoder", ids, config_.max_len);
  return position_embedding_(token_embedding_(ids));
}

template <class T>
Variable<T> ToyDecoder<T>::operator()(const Ids& ids) const {
  const auto scope = this->scope();
  return layers_(embed(ids));
}

template <class T>
EncoderResult<T> ToyDecoder<T>::with_weights(const Ids& ids) const {
  const auto scope = this->scope();
  return layers_.with_weights(embed(ids));
}

template <class T>
Variable<T> ToyDecoder<T>::token_logits(const Ids& ids) const {
  const auto scope = this->scope();
  return token_logits((*this)(ids));
}

template <class T>
Variable<T> ToyDecoder<T>::token_logits(const Variable<T>& hidden) const {
  const auto scope = this->scope();
  return token_head_(hidden);
}

template class ToyDecoder<float>;
template class ToyDecoder<double>;

}  // namespace xgrad
