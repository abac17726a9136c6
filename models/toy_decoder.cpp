#include "toy_decoder.hpp"

#include "../ops/shape/shapes.hpp"
#include "detail/caches_guard.hpp"
#include "detail/new_tokens.hpp"
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

template <class T>
KeyValueCache<T> ToyDecoder<T>::new_cache() const {
  return KeyValueCache<T>(config_.layers.layers);
}

template <class T>
Variable<T> ToyDecoder<T>::next_logits(const Ids& tokens, std::span<const std::size_t> lengths,
                                       std::span<KeyValueCache<T>> caches) const {
  const auto scope = this->scope();
  detail::check_new_tokens<T>("ToyDecoder", tokens, lengths, caches, config_.max_len);
  for (const KeyValueCache<T>& cache : caches) {
    if (cache.layers() != config_.layers.layers)
      detail::fail<ShapeError>("ToyDecoder: a cache must be of the model's new_cache(), with ",
                               config_.layers.layers, " layers, got ", cache.layers());
  }
  detail::CachesGuard<T> caches_guard(caches);
  const Ids positions = detail::new_positions<T>(lengths, caches);
  const Variable<T> x = unsqueeze(position_embedding_(token_embedding_(tokens), positions), 0);
  const Variable<T> hidden = layers_({.caches = caches, .new_tokens = lengths}, x);
  Variable<T> logits = token_logits(detail::last_of_each(squeeze(hidden, 0), lengths));
  caches_guard.succeeded();
  return logits;
}

template class ToyDecoder<float>;
template class ToyDecoder<double>;

}  // namespace xgrad
