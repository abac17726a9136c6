#pragma once

#include <optional>

#include "../../base/detail/by_name.hpp"
#include "../../graph/variable.hpp"

namespace xgrad {

/// What a bag's rows become.
enum class BagMode { sum, mean, max };

template <class T>
struct EmbeddingBagOptions {
  detail::ByName by_name = {};
  std::optional<Ids> offsets = {};  ///< where each bag begins in ids (n); without them bags are rows of ids
  BagMode mode = BagMode::mean;
  Variable<T> per_sample_weights = {};           ///< a factor for each id, in sums
  bool include_last_offset = false;              ///< the last offset is the end of the last bag
  std::optional<std::int64_t> padding_idx = {};  ///< ids that do not count; may be negative
};

/// y (bags, D) = the sum, mean or largest elements of the rows weight[id] of each bag, for weight (V, D): ids
/// (N, L) are N bags, ids (n) with offsets those from each offset to the next. A bag without ids gives zeros.
/// nan if any is nan.
///
/// dweight = dy at each row that counts, by its share; in a maximum at the first of the largest.
/// Throws IndexError for ids, offsets and a padding_idx out of range, ShapeError for shapes that do not fit,
/// ValueError for factors without sums.
/// https://pytorch.org/docs/stable/generated/torch.nn.functional.embedding_bag.html
template <class T>
Variable<T> embedding_bag(const Ids& ids, const Variable<T>& weight, EmbeddingBagOptions<T> options = {});
/// Ids are integers: xt::cast<std::int64_t>(ids).
template <class T, detail::NoIds E>
Variable<T> embedding_bag(const E& ids, const Variable<T>& weight,
                          EmbeddingBagOptions<T> options = {}) = delete;

}  // namespace xgrad
