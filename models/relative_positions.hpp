#pragma once

#include <cstddef>

#include "../base/detail/by_name.hpp"
#include "../graph/variable.hpp"

namespace xgrad {

struct RelativeBucketOptions {
  detail::ByName by_name = {};
  std::size_t num_buckets = 32;
  std::size_t max_distance = 128;  ///< all distances from there on have one bucket
  bool bidirectional = true;  ///< keys behind the query have buckets of their own; else that of distance 0
};

/// The bucket of each pair of a query and a key, (queries, keys), by the distance of their positions: half of
/// the buckets, or all in one direction, of which half again are distances of their own, and the others grow
/// with the logarithm of the distance up to max_distance (T5, Raffel et al. 2020, arXiv:1910.10683,
/// section 2.1). Throws ValueError for too few buckets, and unless max_distance is above the distances that
/// have a bucket of their own.
Ids relative_position_buckets(std::size_t queries, std::size_t keys, RelativeBucketOptions options = {});

/// The bias of scores (heads, queries, keys) that a table (num_buckets, heads) holds for buckets (queries,
/// keys): bias[h, i, j] = table[buckets[i, j], h]. An AttentionMask takes it for all sequences. Throws
/// ShapeError for other shapes and IndexError for a bucket that the table has not.
template <class T>
Variable<T> relative_position_bias(const Variable<T>& table, const Ids& buckets);

}  // namespace xgrad
