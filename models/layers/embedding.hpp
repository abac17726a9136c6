#pragma once

#include <concepts>
#include <utility>

#include "../../ops/index/embedding.hpp"
#include "../../ops/index/embedding_bag.hpp"
#include "../module.hpp"

namespace xgrad {

/// y[...] = weight[ids[...]], with ids of any shape, weight (vocabulary, dim), y (ids' shape, dim).
///
/// Initialized standard normal; the row `padding_idx` is zeros and gets no gradient. Throws ValueError for a
/// size of 0, IndexError for ids or a padding_idx out of range.
/// https://pytorch.org/docs/stable/generated/torch.nn.Embedding.html
template <class T>
class Embedding : public Module<T> {
 public:
  Embedding(std::size_t vocabulary, std::size_t dim, EmbeddingOptions options = {});

  /// With the given weight. Throws ShapeError unless weight is (vocabulary, dim).
  explicit Embedding(Array<T> weight, EmbeddingOptions options = {});
  /// With a weight of any type but I8, which may be that of another module, too.
  template <std::same_as<Weight<T>> W>
  explicit Embedding(W weight, EmbeddingOptions options = {})
      : Embedding(Given{std::move(weight)}, options) {}
  /// A number is no weight.
  explicit Embedding(detail::Number auto) = delete;

  Variable<T> operator()(const Ids& ids) const;
  /// Ids are integers: xt::cast<std::int64_t>(ids).
  template <detail::NoIds E>
  Variable<T> operator()(const E& ids) const = delete;

  /// Throws ValueError for a weight of fewer bits.
  const Variable<T>& weight() const& { return weight_.variable(); }
  Variable<T> weight() && { return weight_.variable(); }
  const Weight<T>& stored_weight() const& { return weight_; }  ///< of any type
  Weight<T> stored_weight() && { return weight_; }

 private:
  struct Given {
    Weight<T> weight;
  };
  Embedding(Given given, EmbeddingOptions options);

  EmbeddingOptions options_;
  Weight<T> weight_;
};

struct EmbeddingBagConfig {
  detail::ByName by_name = {};
  BagMode mode = BagMode::mean;
  bool include_last_offset = false;              ///< the last offset is the end of the last bag
  std::optional<std::int64_t> padding_idx = {};  ///< ids that do not count; may be negative
};

/// embedding_bag of a weight (vocabulary, dim), initialized and checked as that of Embedding.
/// https://pytorch.org/docs/stable/generated/torch.nn.EmbeddingBag.html
template <class T>
class EmbeddingBag : public Module<T> {
 public:
  EmbeddingBag(std::size_t vocabulary, std::size_t dim, EmbeddingBagConfig config = {});

  /// Of bags that are the rows of ids, or begin at the offsets.
  Variable<T> operator()(const Ids& ids, std::optional<Ids> offsets = {},
                         const Variable<T>& per_sample_weights = {}) const;
  /// Ids are integers: xt::cast<std::int64_t>(ids).
  template <detail::NoIds E>
  Variable<T> operator()(const E& ids, std::optional<Ids> offsets = {},
                         const Variable<T>& per_sample_weights = {}) const = delete;
  /// Offsets, too.
  template <detail::NoIds E>
  Variable<T> operator()(const Ids& ids, const E& offsets,
                         const Variable<T>& per_sample_weights = {}) const = delete;

  const Variable<T>& weight() const& { return weight_; }
  Variable<T> weight() && { return weight_; }

 private:
  EmbeddingBagConfig config_;
  Variable<T> weight_;
};

}  // namespace xgrad
