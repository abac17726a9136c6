#pragma once

#include <optional>

#include "../../base/detail/by_name.hpp"
#include "../../graph/op.hpp"
#include "../product/weight.hpp"

namespace xgrad {

struct EmbeddingOptions {
  detail::ByName by_name = {};
  std::optional<std::int64_t> padding_idx = {};  ///< this row gets no gradient; may be negative
};

/// y[...] = weight[ids[...]]: ids of any shape, weight (V, D), y (ids' shape, D).
///
/// Repeated ids add up in dweight. Throws IndexError
/// "embedding: ids must be in [0, 6), got 7 (vocabulary size 6)".
/// https://pytorch.org/docs/stable/generated/torch.nn.functional.embedding.html
template <class T>
Variable<T> embedding(const Ids& ids, const Variable<T>& weight, EmbeddingOptions options = {});
/// The same for a weight of any type but I8, for which it throws ValueError.
template <class T>
Variable<T> embedding(const Ids& ids, const Weight<T>& weight, EmbeddingOptions options = {});
/// Ids are integers: xt::cast<std::int64_t>(ids).
template <class T, detail::NoIds E>
Variable<T> embedding(const E& ids, const Variable<T>& weight, EmbeddingOptions options = {}) = delete;
template <class T, detail::NoIds E>
Variable<T> embedding(const E& ids, const Weight<T>& weight, EmbeddingOptions options = {}) = delete;

namespace ops {

inline constexpr Op embedding("embedding", {"weight"}, {"ids", "padding_idx"});

}  // namespace ops
}  // namespace xgrad
