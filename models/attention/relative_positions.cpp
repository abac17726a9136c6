#include "relative_positions.hpp"

#include <algorithm>
#include <cmath>

#include "../../base/error.hpp"
#include "../../ops/index/detail/indices.hpp"
#include "../../ops/index/embedding.hpp"
#include "../../ops/index/indexing.hpp"
#include "../../ops/pointwise/arithmetic.hpp"
#include "../../ops/product/matmul.hpp"
#include "../../ops/shape/shapes.hpp"

namespace xgrad {
namespace {

/// The bucket of a distance in one direction among `buckets`.
std::size_t bucket_of(std::size_t distance, std::size_t buckets, std::size_t max_distance) {
  const std::size_t exact = buckets / 2;
  if (distance < exact) return distance;
  // in float, as the models that were trained with it
  const float share =
      std::log(static_cast<float>(distance) / static_cast<float>(exact)) /
      static_cast<float>(std::log(static_cast<double>(max_distance) / static_cast<double>(exact)));
  const auto more = static_cast<std::size_t>(share * static_cast<float>(buckets - exact));
  return std::min(exact + more, buckets - 1);
}

/// The bucket of a distance in one direction, of which the first `exact` are distances of their own.
std::size_t log_bucket_of(std::size_t distance, std::size_t exact, std::size_t max_distance) {
  if (distance <= exact) return distance;
  // in float, as the models that were trained with it
  const float of = static_cast<float>(exact);
  const float whole =
      std::log(static_cast<float>(static_cast<double>(max_distance - 1) / static_cast<double>(exact)));
  const float share = std::log(static_cast<float>(distance) / of) / whole;
  return exact + static_cast<std::size_t>(std::ceil(share * (of - 1)));
}

/// x (batch, L, H E) times the positions (R, H E) of its head, (batch, H, L R).
template <class T>
Variable<T> scores_of_positions(const Variable<T>& x, const Variable<T>& positions, std::size_t heads) {
  const std::size_t batch = x.shape(0), length = x.shape(1), head_dim = x.shape(2) / heads,
                    count = positions.shape(0);
  const Variable<T> by_head = permute(reshape(x, {batch, length, heads, head_dim}), {0, 2, 1, 3});
  const Variable<T> columns = permute(reshape(positions, {count, heads, head_dim}), {1, 2, 0});
  return reshape(matmul(by_head, columns), {batch, heads, length * count});
}

}  // namespace

Ids relative_position_buckets(std::size_t queries, std::size_t keys, RelativeBucketOptions options) {
  const std::size_t buckets = options.bidirectional ? options.num_buckets / 2 : options.num_buckets;
  if (buckets < 2)
    detail::fail<ValueError>("relative_position_buckets: num_buckets must be at least ",
                             options.bidirectional ? 4 : 2, ", got ", options.num_buckets);
  if (options.max_distance <= buckets / 2)
    detail::fail<ValueError>("relative_position_buckets: max_distance must be above ", buckets / 2, ", got ",
                             options.max_distance);
  detail::check_count("relative_position_buckets", Shape{queries, keys});
  Ids found = Ids::from_shape({queries, keys});
  for (std::size_t i = 0; i < queries; ++i) {
    for (std::size_t j = 0; j < keys; ++j) {
      const bool is_behind = j > i;
      std::size_t bucket = 0;
      if (!is_behind) bucket = bucket_of(i - j, buckets, options.max_distance);
      if (is_behind && options.bidirectional)
        bucket = buckets + bucket_of(j - i, buckets, options.max_distance);
      found(i, j) = static_cast<std::int64_t>(bucket);
    }
  }
  return found;
}

template <class T>
Variable<T> relative_position_bias(const Variable<T>& table, const Ids& buckets) {
  if (table.dimension() != 2 || buckets.dimension() != 2)
    detail::fail<ShapeError>(
        "relative_position_bias: table must be (num_buckets, heads) and buckets (queries, keys), ", "got ",
        table.shape(), " and ", buckets.shape());
  return unsqueeze(permute(embedding(buckets, table), {2, 0, 1}), 0);
}

Ids signed_position_buckets(std::size_t length, SignedBucketOptions options) {
  if (options.num_buckets == 1)
    detail::fail<ValueError>("signed_position_buckets: num_buckets must be 0 or at least 2, got 1");
  const bool are_distances = options.num_buckets == 0;
  const std::size_t exact = options.num_buckets / 2;
  if (!are_distances && length > exact + 1 && options.max_distance <= exact + 1)
    detail::fail<ValueError>("signed_position_buckets: max_distance must be above ", exact + 1,
                             " for a length of ", length, ", got ", options.max_distance);
  detail::check_count("signed_position_buckets", Shape{length, length});
  Ids found = Ids::from_shape({length, length});
  for (std::size_t i = 0; i < length; ++i) {
    for (std::size_t j = 0; j <= i; ++j) {
      const std::size_t bucket = are_distances ? i - j : log_bucket_of(i - j, exact, options.max_distance);
      found(i, j) = static_cast<std::int64_t>(bucket);
      found(j, i) = -found(i, j);
    }
  }
  return found;
}

template <class T>
Variable<T> disentangled_bias(const Variable<T>& q, const Variable<T>& k, const Variable<T>& pos_k,
                              const Variable<T>& pos_q, const Ids& rows, DisentangledOptions options) {
  if (!pos_k.defined() && !pos_q.defined())
    throw ValueError("disentangled_bias: pos_k or pos_q must be defined");
  const std::size_t heads = options.num_heads;
  const auto fits = [&](const Variable<T>& positions) {
    return !positions.defined() || (positions.dimension() == 2 && positions.shape(1) == q.shape(2));
  };
  if (q.dimension() != 3 || k.dimension() != 3 || rows.dimension() != 2 || q.shape(0) != k.shape(0) ||
      q.shape(2) != k.shape(2) || heads == 0 || q.shape(2) % heads != 0 || rows.shape(0) != q.shape(1) ||
      rows.shape(1) != k.shape(1) || !fits(pos_k) || !fits(pos_q)) {
    detail::fail<ShapeError>(
        "disentangled_bias: q (batch, L, H E), k (batch, S, H E), positions (R, H E) and rows (L, S) must "
        "fit together, got q ",
        q.shape(), ", k ", k.shape(), ", pos_k ", pos_k.defined() ? pos_k.shape() : Shape(), ", pos_q ",
        pos_q.defined() ? pos_q.shape() : Shape(), " and rows ", rows.shape(), ", with ", heads, " heads");
  }
  const std::size_t L = rows.shape(0), S = rows.shape(1);
  // scores of the row of x that row_of gives for a pair (i, j), with the position of the pair
  const auto scores = [&](const Variable<T>& x, const Variable<T>& positions, const auto& row_of) {
    const std::size_t count = positions.shape(0);
    detail::check_index("disentangled_bias", rows, count);
    Ids places = Ids::from_shape({L * S});
    for (std::size_t i = 0; i < L; ++i) {
      for (std::size_t j = 0; j < S; ++j)
        places(i * S + j) = static_cast<std::int64_t>(row_of(i, j) * count) + rows(i, j);
    }
    const Variable<T> all = scores_of_positions(x, positions * static_cast<T>(options.scale), heads);
    return reshape(index_select(all, -1, places), {q.shape(0), heads, L, S});
  };
  Variable<T> sum;
  if (pos_k.defined()) sum = scores(q, pos_k, [](std::size_t i, std::size_t) { return i; });
  if (pos_q.defined()) {
    const Variable<T> of_keys = scores(k, pos_q, [](std::size_t, std::size_t j) { return j; });
    sum = sum.defined() ? sum + of_keys : of_keys;
  }
  return sum;
}

#define XGRAD_INSTANTIATE(T)                                                                         \
  template Variable<T> relative_position_bias(const Variable<T>&, const Ids&);                       \
  template Variable<T> disentangled_bias(const Variable<T>&, const Variable<T>&, const Variable<T>&, \
                                         const Variable<T>&, const Ids&, DisentangledOptions);

XGRAD_INSTANTIATE(float)
XGRAD_INSTANTIATE(double)

}  // namespace xgrad
