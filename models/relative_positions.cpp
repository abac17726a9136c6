#include "relative_positions.hpp"

#include <algorithm>
#include <cmath>

#include "../base/error.hpp"
#include "../ops/index/embedding.hpp"
#include "../ops/shape/shapes.hpp"

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

}  // namespace

Ids relative_position_buckets(std::size_t queries, std::size_t keys, RelativeBucketOptions options) {
  const std::size_t buckets = options.bidirectional ? options.num_buckets / 2 : options.num_buckets;
  if (buckets < 2)
    detail::fail<ValueError>("relative_position_buckets: num_buckets must be at least ",
                             options.bidirectional ? 4 : 2, ", got ", options.num_buckets);
  if (options.max_distance <= buckets / 2)
    detail::fail<ValueError>("relative_position_buckets: max_distance must be above ", buckets / 2, ", got ",
                             options.max_distance);
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
  return permute(embedding(buckets, table), {2, 0, 1});
}

template Variable<float> relative_position_bias(const Variable<float>&, const Ids&);
template Variable<double> relative_position_bias(const Variable<double>&, const Ids&);

}  // namespace xgrad
