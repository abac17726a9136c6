#include "embedding.hpp"

#include <algorithm>

#include "../../base/detail/bytes/bit_cast.hpp"
#include "../../base/random.hpp"
#include "../detail/sizes.hpp"

namespace xgrad {
namespace {

/// The row of padding_idx, counted from the start; 0 without one.
std::size_t checked_padding(const char* module, std::size_t vocabulary,
                            std::optional<std::int64_t> padding_idx) {
  const auto size = static_cast<std::int64_t>(vocabulary), row = padding_idx.value_or(0);
  if (row < -size || row >= size) {
    detail::fail<IndexError>(module, ": padding_idx must be in [", -size, ", ", size, "), got ", row);
  }
  return static_cast<std::size_t>(row < 0 ? row + size : row);
}

template <class T>
Array<T> initial_weight(const char* module, std::size_t vocabulary, std::size_t dim,
                        std::optional<std::int64_t> padding_idx) {
  detail::checked_size(module, "vocabulary", vocabulary);
  detail::checked_size(module, "dim", dim);
  const std::size_t padding = checked_padding(module, vocabulary, padding_idx);
  Array<T> weight = normal<T>({vocabulary, dim});
  if (padding_idx) std::fill_n(weight.data() + padding * dim, dim, T{0});
  return weight;
}

/// The rows of a weight that ids name.
template <class T>
Variable<T> rows_of(const Bfloat16Weight& weight, const Ids& ids) {
  const std::size_t vocabulary = weight.shape()[0], dim = weight.shape()[1];
  Shape shape = ids.shape();
  shape.push_back(dim);
  Array<T> rows = Array<T>::from_shape(shape);
  for (std::size_t i = 0; i < ids.size(); ++i) {
    const std::int64_t id = ids.data()[i];
    if (id < 0 || id >= static_cast<std::int64_t>(vocabulary))
      detail::fail<IndexError>("embedding: ids must be in [0, ", vocabulary, "), got ", id,
                               " (vocabulary size ", vocabulary, ")");
    const std::uint16_t* const from = weight.bits().data() + static_cast<std::size_t>(id) * dim;
    for (std::size_t j = 0; j < dim; ++j)
      rows.data()[i * dim + j] =
          static_cast<T>(kernels::bit_cast<float>(static_cast<std::uint32_t>(from[j]) << 16));
  }
  return Variable<T>(std::move(rows));
}

}  // namespace

template <class T>
Embedding<T>::Embedding(std::size_t vocabulary, std::size_t dim, EmbeddingOptions options)
    : Module<T>("Embedding"),
      options_(options),
      weight_(
          this->parameter("weight", initial_weight<T>("Embedding", vocabulary, dim, options.padding_idx))) {}

template <class T>
Embedding<T>::Embedding(Array<T> weight, EmbeddingOptions options)
    : Module<T>("Embedding"), options_(options) {
  if (weight.dimension() != 2)
    detail::fail<ShapeError>("Embedding: weight must be (vocabulary, dim), got ", weight.shape());
  checked_padding("Embedding", weight.shape(0), options.padding_idx);
  weight_ = this->parameter("weight", std::move(weight));
}

template <class T>
Embedding<T>::Embedding(Bfloat16Weight weight) : Module<T>("Embedding") {
  this->add_bfloat16_weight("weight", weight);
  bfloat16_weight_ = std::move(weight);
}

template <class T>
Variable<T> Embedding<T>::operator()(const Ids& ids) const {
  const auto scope = this->scope();
  if (bfloat16_weight_) [[unlikely]]
    return rows_of<T>(*bfloat16_weight_, ids);
  return embedding(ids, weight_, options_);
}

template <class T>
EmbeddingBag<T>::EmbeddingBag(std::size_t vocabulary, std::size_t dim, EmbeddingBagConfig config)
    : Module<T>("EmbeddingBag"),
      config_(config),
      weight_(this->parameter("weight",
                              initial_weight<T>("EmbeddingBag", vocabulary, dim, config.padding_idx))) {}

template <class T>
Variable<T> EmbeddingBag<T>::operator()(const Ids& ids, std::optional<Ids> offsets,
                                        const Variable<T>& per_sample_weights) const {
  const auto scope = this->scope();
  return embedding_bag(ids, weight_,
                       {.offsets = std::move(offsets),
                        .mode = config_.mode,
                        .per_sample_weights = per_sample_weights,
                        .include_last_offset = config_.include_last_offset,
                        .padding_idx = config_.padding_idx});
}

template class Embedding<float>;
template class Embedding<double>;
template class EmbeddingBag<float>;
template class EmbeddingBag<double>;

}  // namespace xgrad
