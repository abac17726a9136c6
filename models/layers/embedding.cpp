#include "embedding.hpp"

#include <algorithm>

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

}  // namespace

template <class T>
Embedding<T>::Embedding(std::size_t vocabulary, std::size_t dim, EmbeddingOptions options)
    : Module<T>("Embedding"),
      options_(options),
      weight_(
          this->parameter("weight", initial_weight<T>("Embedding", vocabulary, dim, options.padding_idx))) {}

template <class T>
Embedding<T>::Embedding(Array<T> weight, EmbeddingOptions options)
    : Embedding(Given{Variable<T>(std::move(weight), true)}, options) {}

template <class T>
Embedding<T>::Embedding(Given given, EmbeddingOptions options) : Module<T>("Embedding"), options_(options) {
  const Shape& weight = given.weight.shape();
  if (weight.size() != 2)
    detail::fail<ShapeError>("Embedding: weight must be (vocabulary, dim), got ", weight);
  if (given.weight.dtype() == DType::I8)
    throw ValueError("Embedding: weight must be of floats or bfloat16 numbers, got int8");
  checked_padding("Embedding", weight[0], options.padding_idx);
  weight_ = this->Module<T>::weight("weight", std::move(given.weight));
}

template <class T>
Variable<T> Embedding<T>::operator()(const Ids& ids) const {
  const auto scope = this->scope();
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
