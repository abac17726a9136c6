#include "qkv_attention.hpp"

#include <algorithm>

#include "../../graph/fused.hpp"
#include "../detail/kernel_grads.hpp"
#include "../index/indexing.hpp"
#include "../pointwise/broadcast.hpp"
#include "detail/attention_call.hpp"

namespace xgrad {
namespace {

/// How wide the parts of a row are.
struct Parts {
  std::size_t q, kv;

  /// The parts of an array, which may be null.
  template <class T>
  detail::QueriesKeysValues<T> of(const Variable<T>& qkv) const {
    const T* const data = detail::data(qkv);
    return {data, data + q, data + q + kv};
  }
};

Parts checked_parts(const Shape& qkv, const AttentionOptions& options) {
  const std::size_t heads = std::max<std::size_t>(options.num_heads, 1);
  const std::size_t kv_heads = options.num_kv_heads > 0 ? options.num_kv_heads : heads;
  if (qkv.size() < 2 || qkv.back() % (heads + 2 * kv_heads) != 0)
    detail::fail<ShapeError>(ops::qkv_attention.name, ": qkv must be (..., L, (H + 2 G) E) for ", heads,
                             " heads of q and ", kv_heads, " of k and v, got ", qkv);
  const std::size_t head_dim = qkv.back() / (heads + 2 * kv_heads);
  return {heads * head_dim, kv_heads * head_dim};
}

}  // namespace

template <class T>
Variable<T> qkv_attention(const Variable<T>& qkv, const std::type_identity_t<AttentionMask<T>>& attn_mask,
                          AttentionOptions options) {
  constexpr const char* name = ops::qkv_attention.name;
  const Parts parts = checked_parts(qkv.shape(), options);
  Shape q_shape = qkv.shape(), kv_shape = qkv.shape();
  q_shape.back() = parts.q;
  kv_shape.back() = parts.kv;
  const detail::SharedPlan plan =
      detail::plan_attention<T>(name, q_shape, kv_shape, kv_shape, attn_mask, options, qkv.shape().back());
  Variable<T> y = detail::empty<T>(detail::output_shape(*plan, q_shape), name);
  const Variable<T>& bias = attn_mask.bias();
  const Variable<T> saved =
      detail::attention_forward<T>(*plan, parts.of(qkv), bias, will_record(qkv, bias), detail::data(y));
  return fused<T>(
      ops::qkv_attention, std::move(y), Inputs(qkv, bias),
      Attributes(options.num_heads, detail::kv_heads_attribute(*plan), plan->scale, options.is_causal,
                 options.window_left, options.window_right, detail::unless_zero(options.first_query),
                 options.num_keys, options.softcap, options.dropout_p, attn_mask.allowed()),
      Saved(saved),
      [plan, parts](const Variable<T>& qkv, const Variable<T>& bias) {
        const auto columns = [&](std::size_t begin, std::size_t count) {
          return narrow(qkv, -1, static_cast<std::ptrdiff_t>(begin), static_cast<std::ptrdiff_t>(count));
        };
        return detail::attention_composed(*plan, columns(0, parts.q), columns(parts.q, parts.kv),
                                          columns(parts.q + parts.kv, parts.kv), bias)
            .output;
      },
      [plan, parts](const Variable<T>& dy, Needs needs, const Variable<T>& qkv, const Variable<T>& bias,
                    const Variable<T>& saved) -> Grads<T, 2> {
        auto grads = detail::empty_grads<T, 2>(needs);
        auto& [dqkv, dbias] = grads;
        Variable<T> dscores;
        if (dbias.defined()) dscores = detail::empty<T>(plan->scores);
        T* const d = detail::data_if_needed(dqkv);
        detail::attention_backward<T>(*plan, detail::data(dy), parts.of(qkv), bias, saved,
                                      {d, d ? d + parts.q : nullptr, d ? d + parts.q + parts.kv : nullptr,
                                       detail::data_if_needed(dscores)});
        if (dbias.defined()) dbias = detail::summed(dscores, bias.shape());
        return grads;
      });
}

#define XGRAD_INSTANTIATE(T) \
  template Variable<T> qkv_attention(const Variable<T>&, const AttentionMask<T>&, AttentionOptions);

XGRAD_INSTANTIATE(float)
XGRAD_INSTANTIATE(double)

}  // namespace xgrad
