#include "embedding.hpp"

#include <algorithm>

#include "../base/random.hpp"
#include "detail/sizes.hpp"

namespace xgrad {
namespace {

/// The row of padding_idx, counted from the start; 0 without one.
std::size_t checked_padding(std::size_t vocabulary, const EmbeddingOptions& options) {
  const auto size = static_cast<std::int64_t>(vocabulary), row = options.padding_idx.value_or(0);
  if (row < -size || row >= size) {
    detail::fail<IndexError>("Embedding: padding_idx must be in [", -size, ", ", size, "), got ", row);
  }
  return static_cast<std::size_t>(row < 0 ? row + size : row);
}

template <class T>
Array<T> initial_weight(std::size_t vocabulary, std::size_t dim, const EmbeddingOptions& options) {
  const std::size_t padding = checked_padding(vocabulary, options);
  Array<T> weight = normal<T>({vocabulary, dim});
  if (options.padding_idx) std::fill_n(weight.data() + padding * dim, dim, T{0});
  return weight;
}

}  // namespace

template <class T>
Embedding<T>::Embedding(std::size_t vocabulary, std::size_t dim, EmbeddingOptions options)
    : Module<T>("Embedding"), options_(options) {
  detail::checked_size("Embedding", "vocabulary", vocabulary);
  detail::checked_size("Embedding", "dim", dim);
  weight_ = this->parameter("weight", initial_weight<T>(vocabulary, dim, options));
}

template <class T>
Embedding<T>::Embedding(Array<T> weight, EmbeddingOptions options)
    : Module<T>("Embedding"), options_(options) {
  if (weight.dimension() != 2)
    detail::fail<ShapeError>("Embedding: weight must be (vocabulary, dim), got ", weight.shape());
  checked_padding(weight.shape(0), options);
  weight_ = this->parameter("weight", std::move(weight));
}

template <class T>
Variable<T> Embedding<T>::operator()(const Ids& ids) const {
  const auto scope = this->scope();
  return embedding(ids, weight_, options_);
}

template class Embedding<float>;
template class Embedding<double>;

}  // namespace xgrad
