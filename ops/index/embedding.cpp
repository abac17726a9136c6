#include "embedding.hpp"

#include <algorithm>
#include <utility>
#include <vector>

#include "../../graph/record.hpp"
#include "../../kernels/index/embedding.hpp"
#include "../../kernels/pointwise/binary.hpp"
#include "../product/detail/reduced_rows.hpp"
#include "../shape/shapes.hpp"
#include "masked_fill.hpp"

namespace xgrad {
namespace ops {

constexpr Op embedding_grad("embedding_grad", {"dy"});

}  // namespace ops

namespace {

constexpr std::int64_t no_padding = -1;

template <class T>
Variable<T> lookup(const Ids& ids, const Variable<T>& weight, std::int64_t padding);

/// dweight[ids[i]] += dy[i].
template <class T>
void add_rows(const Ids& ids, const Variable<T>& dy, T* dweight) {
  kernels::scatter_add_rows<T>({detail::data(dy), ids.size(), dy.shape().back()}, ids.data(), dweight);
}

/// sum[ids[i]] += dy[i]. The rows of an id are added up first, so that the bits are those of sum +
/// embedding_grad.
template <class T>
void add_to_sum(const Ids& ids, const Variable<T>& dy, T* sum) {
  std::vector<std::int64_t> distinct(ids.begin(), ids.end());
  std::sort(distinct.begin(), distinct.end());
  distinct.erase(std::unique(distinct.begin(), distinct.end()), distinct.end());
  Ids places = ids;
  for (std::int64_t& id : places) {
    id = std::lower_bound(distinct.begin(), distinct.end(), id) - distinct.begin();
  }
  Variable<T> rows = detail::empty<T>(Shape{distinct.size(), dy.shape().back()});
  kernels::fill(T{0}, detail::data(rows), rows.size());
  add_rows(places, dy, detail::data(rows));
  kernels::scatter_add_rows<T>({detail::data(std::as_const(rows)), distinct.size(), dy.shape().back()},
                               distinct.data(), sum);
}

/// dweight (vocabulary, D), dweight[ids[i]] += dy[i], the padding row 0. It is linear in dy: its gradient is
/// a lookup.
template <class T>
Variable<T> embedding_grad(const Ids& ids, const Variable<T>& dy, std::size_t vocabulary,
                           std::int64_t padding) {
  const std::size_t dim = dy.shape().back();
  Variable<T> dweight = detail::empty<T>(Shape{vocabulary, dim});
  T* rows = detail::data(dweight);
  kernels::fill(T{0}, rows, dweight.size());
  add_rows(ids, dy, rows);
  if (padding != no_padding) kernels::fill(T{0}, rows + static_cast<std::size_t>(padding) * dim, dim);
  return record<T>(ops::embedding_grad, std::move(dweight), Inputs(dy), Saved(ids),
                   [padding](Variable<T> d, Needs, const Ids& ids) -> Grads<T, 1> {
                     const Variable<T> rows = lookup(ids, d, padding);
                     if (padding == no_padding) return {rows};
                     Mask is_padding = xt::equal(ids, padding);
                     Shape column = ids.shape();
                     column.push_back(1);
                     is_padding.reshape(column);
                     return {masked_fill(rows, is_padding, 0)};
                   });
}

/// y[i] = weight[ids[i]] for ids that are in range.
template <class T>
Variable<T> lookup(const Ids& ids, const Variable<T>& weight, std::int64_t padding) {
  Shape shape = ids.shape();
  shape.push_back(weight.shape()[1]);
  Variable<T> y = detail::empty<T>(shape, "embedding");
  kernels::gather_rows<T>(detail::data(weight), ids.data(), {detail::data(y), ids.size(), weight.shape()[1]});
  return record<T>(ops::embedding, std::move(y), Inputs(weight),
                   Attributes(ids, padding == no_padding ? std::nullopt : std::optional(padding)), Saved(ids),
                   [padding](Variable<T> dy, Needs needs, const Ids& ids) -> Grads<T, 1> {
                     T* const sum = padding == no_padding ? needs.sum<T>(0) : nullptr;
                     if (sum != nullptr) {
                       add_to_sum(ids, dy, sum);
                       return {};
                     }
                     return {embedding_grad(ids, dy, needs.shape(0)[0], padding)};
                   });
}

void check_ids(const Ids& ids, std::int64_t vocabulary) {
  for (const std::int64_t id : ids.storage()) {
    if (id < 0 || id >= vocabulary) [[unlikely]] {
      detail::fail<IndexError>("embedding: ids must be in [0, ", vocabulary, "), got ", id,
                               " (vocabulary size ", vocabulary, ")");
    }
  }
}

/// The row of padding_idx, counted from the start.
std::int64_t checked_padding_row(const EmbeddingOptions& options, std::int64_t vocabulary) {
  std::int64_t padding = no_padding;
  if (options.padding_idx) {
    padding = *options.padding_idx < 0 ? *options.padding_idx + vocabulary : *options.padding_idx;
    if (padding < 0 || padding >= vocabulary) {
      detail::fail<IndexError>("embedding: padding_idx must be in [", -vocabulary, ", ", vocabulary,
                               "), got ", *options.padding_idx);
    }
  }
  return padding;
}

}  // namespace

template <class T>
Variable<T> embedding(const Ids& ids, const Variable<T>& weight, EmbeddingOptions options) {
  if (weight.dimension() != 2) {
    detail::fail<ShapeError>("embedding: weight must have the axes (vocabulary, dim), got ", weight.shape());
  }
  const auto vocabulary = static_cast<std::int64_t>(weight.shape()[0]);
  check_ids(ids, vocabulary);
  return lookup(ids, weight, checked_padding_row(options, vocabulary));
}

template <class T>
Variable<T> embedding(const Ids& ids, const Weight<T>& weight, EmbeddingOptions options) {
  if (weight.is_trainable()) [[likely]]
    return embedding(ids, detail::WeightAccess<T>::variable(weight), options);
  if (weight.dtype() == DType::I8)
    detail::fail<ValueError>("embedding: weight must not be of integers, got ", weight.shape(), " of them");
  Shape shape = weight.shape();
  const auto vocabulary = static_cast<std::int64_t>(shape[0]);
  check_ids(ids, vocabulary);
  checked_padding_row(options, vocabulary);
  shape.insert(shape.erase(shape.begin()), ids.shape().begin(), ids.shape().end());
  Variable<T> rows = detail::empty<T>(shape, "embedding");
  detail::WeightAccess<T>::reduced(weight)->gather(ids.data(), ids.size(), detail::data(rows));
  return rows;
}

#define XGRAD_INSTANTIATE(T)                                                        \
  template Variable<T> embedding(const Ids&, const Variable<T>&, EmbeddingOptions); \
  template Variable<T> embedding(const Ids&, const Weight<T>&, EmbeddingOptions);

XGRAD_INSTANTIATE(float)
XGRAD_INSTANTIATE(double)

}  // namespace xgrad
