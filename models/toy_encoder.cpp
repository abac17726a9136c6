#include "toy_encoder.hpp"

#include <algorithm>

#include "../ops/index/indexing.hpp"
#include "../ops/product/matmul.hpp"
#include "../ops/reduce/reductions.hpp"
#include "../ops/shape/shapes.hpp"
#include "detail/sizes.hpp"
#include "detail/token_ids.hpp"

namespace xgrad {
namespace {

const ToyEncoderConfig& checked(const ToyEncoderConfig& config) {
  detail::checked_size("ToyEncoder", "vocab_size", config.vocab_size);
  detail::checked_size("ToyEncoder", "max_len", config.max_len);
  detail::checked_size("ToyEncoder", "d_model", config.encoder.d_model);
  if (config.pad_id &&
      (*config.pad_id < 0 || *config.pad_id >= static_cast<std::int64_t>(config.vocab_size))) {
    detail::fail<ValueError>("ToyEncoder: pad_id must be in [0, ", config.vocab_size, "), got ",
                             *config.pad_id);
  }
  return config;
}

/// (batch, 1, seq): what each position counts in the mean over those that are not padding.
template <class T>
Array<T> mean_weights(const Ids& ids, std::int64_t pad_id) {
  const std::size_t batch = ids.shape(0), seq = ids.shape(1);
  Array<T> weights = Array<T>::from_shape({batch, std::size_t{1}, seq});
  const std::int64_t* first = ids.data();
  T* to = weights.data();
  for (std::size_t row = 0; row < batch; ++row, first += seq, to += seq) {
    const std::size_t real = seq - static_cast<std::size_t>(std::count(first, first + seq, pad_id));
    const T share = real > 0 ? T{1} / static_cast<T>(real) : T{0};
    for (std::size_t i = 0; i < seq; ++i) to[i] = first[i] == pad_id ? T{0} : share;
  }
  return weights;
}

}  // namespace

template <class T>
ToyEncoder<T>::ToyEncoder(const ToyEncoderConfig& config)
    : Module<T>("ToyEncoder"),
      config_(checked(config)),
      token_embedding_(this->child("token_embedding", Embedding<T>(config.vocab_size, config.encoder.d_model,
                                                                   {.padding_idx = config.pad_id}))),
      position_embedding_(make_positions()),
      encoder_(this->child("encoder", TransformerEncoder<T>(config.encoder))),
      token_head_(this->child("token_head", Linear<T>(config.encoder.d_model, config.vocab_size))) {
  if (config.classes > 0) {
    class_head_ = this->child("class_head", Linear<T>(config.encoder.d_model, config.classes));
  }
}

template <class T>
typename ToyEncoder<T>::PositionEmbedding ToyEncoder<T>::make_positions() {
  const std::size_t max_len = config_.max_len, d_model = config_.encoder.d_model;
  if (config_.positions == Positions::learned) {
    return this->child("position_embedding", LearnedPositionalEncoding<T>(max_len, d_model));
  }
  return this->child("position_embedding", SinusoidalPositionalEncoding<T>(max_len, d_model));
}

template <class T>
Variable<T> ToyEncoder<T>::embed(const Ids& ids) const {
  detail::check_token_ids("ToyEncoder", ids, config_.max_len);
  const Variable<T> tokens = token_embedding_(ids);
  return std::visit([&](const auto& positions) { return positions(tokens); }, position_embedding_);
}

template <class T>
AttentionMask<T> ToyEncoder<T>::mask(const Ids& ids) const {
  if (!config_.pad_id) return {};
  return padding_mask(ids, *config_.pad_id);
}

template <class T>
Variable<T> ToyEncoder<T>::operator()(const Ids& ids) const {
  const auto scope = this->scope();
  const Variable<T> embedded = embed(ids);
  return encoder_(embedded, mask(ids));
}

template <class T>
EncoderResult<T> ToyEncoder<T>::with_weights(const Ids& ids) const {
  const auto scope = this->scope();
  const Variable<T> embedded = embed(ids);
  return encoder_.with_weights(embedded, mask(ids));
}

template <class T>
Variable<T> ToyEncoder<T>::token_logits(const Ids& ids) const {
  const auto scope = this->scope();
  return token_logits((*this)(ids));
}

template <class T>
Variable<T> ToyEncoder<T>::class_logits(const Ids& ids) const {
  const auto scope = this->scope();
  return class_logits((*this)(ids), ids);
}

template <class T>
Variable<T> ToyEncoder<T>::token_logits(const Variable<T>& encoded) const {
  const auto scope = this->scope();
  return token_head_(encoded);
}

template <class T>
Variable<T> ToyEncoder<T>::class_logits(const Variable<T>& encoded, const Ids& ids) const {
  const auto scope = this->scope();
  if (!class_head_) {
    detail::fail<ValueError>("ToyEncoder: class_logits needs a class head, but the config has 0 classes");
  }
  if (ids.dimension() != 2 || encoded.dimension() != 3 || encoded.shape(0) != ids.shape(0) ||
      encoded.shape(1) != ids.shape(1)) {
    detail::fail<ShapeError>("ToyEncoder: encoded (batch, seq, d_model) must match ids (batch, seq), got ",
                             encoded.shape(), " and ", ids.shape());
  }
  return (*class_head_)(pool(encoded, ids));
}

/// The (batch, d_model) that stands for the whole sequences.
template <class T>
Variable<T> ToyEncoder<T>::pool(const Variable<T>& encoded, const Ids& ids) const {
  if (config_.pooling == Pooling::first) return select(encoded, 1, 0);
  if (!config_.pad_id) return mean(encoded, 1);
  const Variable<T> weights(mean_weights<T>(ids, *config_.pad_id));
  return reshape(matmul(weights, encoded), {encoded.shape(0), encoded.shape(2)});
}

template class ToyEncoder<float>;
template class ToyEncoder<double>;

}  // namespace xgrad
