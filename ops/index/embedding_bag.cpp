#include "embedding_bag.hpp"

#include <algorithm>
#include <cmath>
#include <vector>

#include "../pointwise/arithmetic.hpp"
#include "../pointwise/detail/weighted.hpp"
#include "../shape/shapes.hpp"
#include "embedding.hpp"
#include "indexing.hpp"
#include "masked_fill.hpp"
#include "scatter.hpp"

namespace xgrad {
namespace {

/// The first id of each bag, and behind them the end of the last.
std::vector<std::size_t> bag_borders(const Ids& ids, const std::optional<Ids>& offsets,
                                     bool include_last_offset) {
  std::vector<std::size_t> borders;
  if (!offsets) {
    if (ids.dimension() != 2)
      detail::fail<ShapeError>("embedding_bag: ids without offsets must be (bags, length), got ",
                               ids.shape());
    if (include_last_offset) detail::fail<ValueError>("embedding_bag: include_last_offset needs offsets");
    for (std::size_t bag = 0; bag <= ids.shape(0); ++bag) borders.push_back(bag * ids.shape(1));
    return borders;
  }
  if (ids.dimension() != 1 || offsets->dimension() != 1) {
    detail::fail<ShapeError>("embedding_bag: ids and offsets must be (n) and (bags), got ", ids.shape(),
                             " and ", offsets->shape());
  }
  std::int64_t before = 0;
  const auto length = static_cast<std::int64_t>(ids.size());
  for (const std::int64_t offset : offsets->storage()) {
    if (offset < before || offset > length || (borders.empty() && offset != 0)) {
      detail::fail<IndexError>("embedding_bag: offsets must begin with 0 and ascend to at most the ", length,
                               " ids, got ", offset);
    }
    borders.push_back(static_cast<std::size_t>(before = offset));
  }
  if (!include_last_offset) {
    borders.push_back(ids.size());
  } else if (borders.empty()) {
    detail::fail<ShapeError>("embedding_bag: with include_last_offset there must be an offset, got (0)");
  }
  return borders;
}

/// What counts, in order: its ids, the bag of each and its number.
struct BagEntries {
  std::vector<std::int64_t> ids, bags, numbers;
};

Ids as_ids(const std::vector<std::int64_t>& numbers) {
  Ids ids = Ids::from_shape({numbers.size()});
  std::copy(numbers.begin(), numbers.end(), ids.data());
  return ids;
}

/// The row of the largest element in each column of each bag: the first of equal ones, or a nan. Bags without
/// ids have row 0.
template <class T>
Ids largest_rows(const Variable<T>& weight, const BagEntries& entries, std::size_t bags) {
  const std::size_t dim = weight.shape(1);
  Ids rows(Shape{bags, dim}, 0);
  const T* const table = detail::data(weight);
  for (std::size_t i = 0; i < entries.ids.size(); ++i) {
    std::int64_t* const best = rows.data() + static_cast<std::size_t>(entries.bags[i]) * dim;
    const bool is_first = i == 0 || entries.bags[i] != entries.bags[i - 1];
    const T* const row = table + static_cast<std::size_t>(entries.ids[i]) * dim;
    for (std::size_t d = 0; d < dim; ++d) {
      const T largest = table[static_cast<std::size_t>(best[d]) * dim + d];
      if (is_first || row[d] > largest || (std::isnan(row[d]) && !std::isnan(largest)))
        best[d] = entries.ids[i];
    }
  }
  return rows;
}

}  // namespace

template <class T>
Variable<T> embedding_bag(const Ids& ids, const Variable<T>& weight, EmbeddingBagOptions<T> options) {
  if (weight.dimension() != 2) {
    detail::fail<ShapeError>("embedding_bag: weight must have the axes (vocabulary, dim), got ",
                             weight.shape());
  }
  const std::vector<std::size_t> borders = bag_borders(ids, options.offsets, options.include_last_offset);
  const Variable<T>& factors = options.per_sample_weights;
  if (factors.defined() && options.mode != BagMode::sum)
    detail::fail<ValueError>("embedding_bag: per_sample_weights are for sums");
  if (factors.defined() && !same_shape(factors.shape(), ids.shape())) {
    detail::fail<ShapeError>("embedding_bag: per_sample_weights must have the shape of ids ", ids.shape(),
                             ", got ", factors.shape());
  }
  const auto vocabulary = static_cast<std::int64_t>(weight.shape(0));
  std::optional<std::int64_t> padding = options.padding_idx;
  if (padding && (*padding < -vocabulary || *padding >= vocabulary)) {
    detail::fail<IndexError>("embedding_bag: padding_idx must be in [", -vocabulary, ", ", vocabulary,
                             "), got ", *padding);
  }
  if (padding && *padding < 0) *padding += vocabulary;
  const std::size_t bags = borders.size() - 1, dim = weight.shape(1);
  BagEntries entries;
  Variable<T> counts = detail::empty<T>(Shape{bags, 1});
  for (std::size_t bag = 0; bag < bags; ++bag) {
    const std::size_t before = entries.ids.size();
    for (std::size_t i = borders[bag]; i < borders[bag + 1]; ++i) {
      const std::int64_t id = ids.data()[i];
      if (id < 0 || id >= vocabulary) {
        detail::fail<IndexError>("embedding_bag: ids must be in [0, ", vocabulary, "), got ", id);
      }
      if (id == padding) continue;
      entries.ids.push_back(id);
      entries.bags.push_back(static_cast<std::int64_t>(bag));
      entries.numbers.push_back(static_cast<std::int64_t>(i));
    }
    detail::data(counts)[bag] = static_cast<T>(entries.ids.size() - before);
  }
  if (options.mode == BagMode::max && !entries.ids.empty()) {
    return masked_fill(gather(weight, 0, largest_rows(weight, entries, bags)),
                       Mask(xt::equal(counts.value(), T(0))), T(0));
  }
  Variable<T> rows = embedding(as_ids(entries.ids), weight);
  if (factors.defined()) {
    const Variable<T> used = index_select(reshape(factors, {ids.size()}), 0, as_ids(entries.numbers));
    rows = detail::weighted(reshape(used, {entries.ids.size(), 1}), rows);
  }
  const Variable<T> sums =
      index_add(Variable<T>(Array<T>(Shape{bags, dim}, T(0))), 0, as_ids(entries.bags), rows);
  return options.mode == BagMode::mean ? sums / Variable<T>(Array<T>(xt::maximum(counts.value(), T(1))))
                                       : sums;
}

#define XGRAD_INSTANTIATE(T) \
  template Variable<T> embedding_bag(const Ids&, const Variable<T>&, EmbeddingBagOptions<T>);

XGRAD_INSTANTIATE(float)
XGRAD_INSTANTIATE(double)

}  // namespace xgrad
