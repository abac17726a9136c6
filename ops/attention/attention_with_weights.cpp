#include "attention_with_weights.hpp"

#include <algorithm>
#include <limits>

#include "../../base/detail/arrays/mt19937.hpp"
#include "../index/indexing.hpp"
#include "../index/masked_fill.hpp"
#include "../norm/softmax.hpp"
#include "../pointwise/arithmetic.hpp"
#include "../pointwise/elementwise.hpp"
#include "../product/matmul.hpp"
#include "../shape/shapes.hpp"
#include "detail/attention_call.hpp"

namespace xgrad {
namespace {

/// (..., L, H E) as (..., H, L, E)
template <class T>
Variable<T> split_heads(const Variable<T>& x, std::size_t heads) {
  if (heads == 0) return x;
  Shape shape = x.shape();
  shape.back() = heads;
  shape.push_back(x.shape().back() / heads);
  return transpose(reshape(x, shape), -3, -2);
}

/// (..., G, S, E) as (..., H, S, E): each head `times` times in a row.
template <class T>
Variable<T> repeat_heads(const Variable<T>& x, std::size_t times) {
  if (times == 1) return x;
  const Variable<T> apart = unsqueeze(x, -3);
  Shape repeated = apart.shape(), joined = x.shape();
  repeated[repeated.size() - 3] = times;
  joined[joined.size() - 3] *= times;
  return reshape(expand(apart, Dims(repeated)), joined);
}

template <class T>
Variable<T> merge_heads(const Variable<T>& x, std::size_t heads) {
  if (heads == 0) return x;
  const Variable<T> y = transpose(x, -3, -2);
  Shape shape(y.shape().begin(), y.shape().end() - 1);
  shape.back() = y.shape().back() * heads;
  return reshape(y, shape);
}

/// True on the rows of scores that are -inf throughout: queries that may attend to no key.
template <class T>
Mask rows_without_keys(const Variable<T>& scores) {
  Shape shape = scores.shape();
  const std::size_t S = shape.back();
  shape.back() = 1;
  Mask without = Mask::from_shape(shape);
  for (std::size_t r = 0; r < without.size(); ++r) {
    const T* row = scores.value().data() + r * S;
    without.data()[r] =
        std::all_of(row, row + S, [](T s) { return s == -std::numeric_limits<T>::infinity(); });
  }
  return without;
}

/// What dropout multiplies the weights with: 0, or 1 / (1 - p) where the bit is set.
template <class T>
Variable<T> dropout_mask(const detail::AttentionPlan& plan) {
  Variable<T> mask = detail::empty<T>(plan.scores);
  const std::size_t cols = plan.sizes.k_len, row_bytes = kernels::bytes_of_bits(cols);
  const T scale = detail::dropout_scale<T>(plan.dropout_p);
  const std::uint8_t* bits = plan.kept->data();
  T* row = detail::data(mask);
  for (std::size_t rows = row_count(plan.scores); rows > 0; --rows, bits += row_bytes, row += cols) {
    for (std::size_t i = 0; i < cols; ++i) row[i] = (bits[i / 8] >> i % 8 & 1) != 0 ? scale : T{0};
  }
  return mask;
}

}  // namespace

namespace detail {

template <class T>
AttentionResult<T> attention_composed(const AttentionPlan& plan, const Variable<T>& q, const Variable<T>& k,
                                      const Variable<T>& v, const Variable<T>& bias) {
  const std::size_t heads = plan.scores.size() > plan.batch_axes + 2 ? plan.sizes.heads : 0;
  const std::size_t kv_heads = heads > 0 ? plan.sizes.kv_heads : 0, times = heads > 0 ? heads / kv_heads : 1;
  const auto first_rows = [&](const Variable<T>& x) {
    const std::size_t count = plan.sizes.k_len;
    return count == x.shape(-2) ? x : narrow(x, -2, 0, static_cast<std::ptrdiff_t>(count));
  };
  const Variable<T> queries = split_heads(q, heads);
  const Variable<T> keys = repeat_heads(split_heads(first_rows(k), kv_heads), times);
  const Variable<T> values = repeat_heads(split_heads(first_rows(v), kv_heads), times);

  const auto scores_of = [&](const Variable<T>& from) {
    Variable<T> scores = matmul(from, transpose(keys, -2, -1)) * static_cast<T>(plan.scale);
    if (const T cap = static_cast<T>(plan.softcap); cap != 0) scores = tanh(scores / cap) * cap;
    return masked_scores(scores, plan.allowed.get(), bias, plan.window);
  };
  Variable<T> scores = scores_of(queries);
  // What hidden keys and values hold, be it nan, has no part in a query without a key.
  const Mask without_keys = rows_without_keys(scores);
  const bool any = std::find(without_keys.begin(), without_keys.end(), true) != without_keys.end();
  if (any) scores = masked_fill(scores_of(masked_fill(queries, without_keys, 0)), without_keys, 0);
  Variable<T> weights = softmax(scores);
  if (any) weights = masked_fill(weights, without_keys, 0);
  if (plan.kept) weights = masked_mul(weights, dropout_mask<T>(plan));
  Variable<T> context = matmul(weights, values);
  if (any) context = masked_fill(context, without_keys, 0);
  return {merge_heads(context, heads), weights};
}

}  // namespace detail

template <class T>
AttentionResult<T> attention_with_weights(const Variable<T>& q, const Variable<T>& k, const Variable<T>& v,
                                          const std::type_identity_t<AttentionMask<T>>& attn_mask,
                                          AttentionOptions options) {
  constexpr const char* name = ops::scaled_dot_product_attention.name;
  const detail::SharedPlan plan =
      detail::plan_attention<T>(name, q.shape(), k.shape(), v.shape(), attn_mask, options);
  return detail::attention_composed(*plan, q, k, v, attn_mask.bias());
}

#define XGRAD_INSTANTIATE(T)                                                                                 \
  template AttentionResult<T> detail::attention_composed(                                                    \
      const AttentionPlan&, const Variable<T>&, const Variable<T>&, const Variable<T>&, const Variable<T>&); \
  template AttentionResult<T> attention_with_weights(const Variable<T>&, const Variable<T>&,                 \
                                                     const Variable<T>&, const AttentionMask<T>&,            \
                                                     AttentionOptions);

XGRAD_INSTANTIATE(float)
XGRAD_INSTANTIATE(double)

}  // namespace xgrad
