#pragma once

#include <cstddef>

#include "../../base/detail/by_name.hpp"
#include "../../graph/variable.hpp"

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
[[nodiscard]] Ids relative_position_buckets(std::size_t queries, std::size_t keys,
                                            RelativeBucketOptions options = {});

/// The bias of scores (1, heads, queries, keys), for an AttentionMask of all sequences, that a table
/// (num_buckets, heads) holds for buckets (queries, keys): bias[0, h, i, j] = table[buckets[i, j], h]. Throws
/// ShapeError for other shapes and IndexError for a bucket that the table has not.
template <class T>
Variable<T> relative_position_bias(const Variable<T>& table, const Ids& buckets);
/// Buckets are integers: xt::cast<std::int64_t>(buckets).
template <class T, detail::NoIds E>
Variable<T> relative_position_bias(const Variable<T>& table, const E& buckets) = delete;

struct SignedBucketOptions {
  detail::ByName by_name = {};
  std::size_t num_buckets = 0;     ///< of each direction; 0: every distance is one
  std::size_t max_distance = 512;  ///< one more than the distance that the last bucket ends with
};

/// The signed bucket of the distance d = i - j of each query i and key j, (length, length). With m =
/// num_buckets / 2 it is d up to |d| = m, and beyond that
/// sign(d) (m + ceil(log(|d| / m) / log((max_distance - 1) / m) (m - 1))) (DeBERTa, He et al. 2021,
/// arXiv:2006.03654; in float, as its models were trained). Throws ValueError for one bucket, and unless
/// max_distance - 1 is above m if a distance is.
[[nodiscard]] Ids signed_position_buckets(std::size_t length, SignedBucketOptions options = {});

struct DisentangledOptions {
  detail::ByName by_name = {};
  std::size_t num_heads = 1;  ///< number of heads in the last axes
  double scale = 1;
};

/// The scores of contents with relative positions (DeBERTa, He et al. 2021, arXiv:2006.03654, section 3.1), a
/// bias for an AttentionMask:
/// y[b, h, i, j] = scale (q[b, i, h] . pos_k[rows[i, j], h] + k[b, j, h] . pos_q[rows[i, j], h]).
///
/// q (batch, L, H E) and k (batch, S, H E) with H = num_heads, pos_k and pos_q (R, H E), of which one may be
/// undefined and then adds nothing, rows (L, S), y (batch, H, L, S). Composed of products and index_select,
/// as are the gradients. Throws ShapeError for other shapes, IndexError for a row that the positions have
/// not, ValueError if both positions are undefined.
template <class T>
Variable<T> disentangled_bias(const Variable<T>& q, const Variable<T>& k, const Variable<T>& pos_k,
                              const Variable<T>& pos_q, const Ids& rows, DisentangledOptions options = {});
/// Rows are integers: xt::cast<std::int64_t>(rows).
template <class T, detail::NoIds E>
Variable<T> disentangled_bias(const Variable<T>& q, const Variable<T>& k, const Variable<T>& pos_k,
                              const Variable<T>& pos_q, const E& rows,
                              DisentangledOptions options = {}) = delete;

}  // namespace xgrad
