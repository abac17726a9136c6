#pragma once

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
  /// With a weight (vocabulary, dim) of bfloat16 numbers, which has no gradient. It is no parameter, but one
  /// of named_bfloat16_weights().
  explicit Embedding(Bfloat16Weight weight);
  /// A number is no weight.
  explicit Embedding(detail::Number auto) = delete;

  Variable<T> operator()(const Ids& ids) const;
  /// Ids are integers: xt::cast<std::int64_t>(ids).
  template <detail::NoIds E>
  Variable<T> operator()(const E& ids) const = delete;

  const Variable<T>& weight() const& { return weight_; }  ///< undefined with one of bfloat16 numbers
  Variable<T> weight() && { return weight_; }
  const std::optional<Bfloat16Weight>& bfloat16_weight() const& { return bfloat16_weight_; }
  std::optional<Bfloat16Weight> bfloat16_weight() && { return bfloat16_weight_; }

 private:
  EmbeddingOptions options_;
  Variable<T> weight_;
  std::optional<Bfloat16Weight> bfloat16_weight_;
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
