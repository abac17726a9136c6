#include "attention.hpp"

#include "../../graph/fused.hpp"
#include "../detail/kernel_grads.hpp"
#include "../pointwise/broadcast.hpp"
#include "detail/attention_call.hpp"

namespace xgrad {

template <class T>
Variable<T> scaled_dot_product_attention(const Variable<T>& q, const Variable<T>& k, const Variable<T>& v,
                                         const std::type_identity_t<AttentionMask<T>>& attn_mask,
                                         AttentionOptions options) {
  constexpr const char* name = ops::scaled_dot_product_attention.name;
  const detail::SharedPlan plan =
      detail::plan_attention<T>(name, q.shape(), k.shape(), v.shape(), attn_mask, options);
  Variable<T> y = detail::empty<T>(detail::output_shape(*plan, q.shape()), name);
  const Variable<T>& bias = attn_mask.bias();
  const Variable<T> saved =
      detail::attention_forward<T>(*plan, {detail::data(q), detail::data(k), detail::data(v)}, bias,
                                   will_record(q, k, v, bias), detail::data(y));
  return fused<T>(
      ops::scaled_dot_product_attention, std::move(y), Inputs(q, k, v, bias),
      Attributes(options.num_heads, detail::kv_heads_attribute(*plan), plan->scale, options.is_causal,
                 options.window_left, options.window_right, detail::unless_zero(options.first_query),
                 options.num_keys, options.softcap, options.dropout_p, attn_mask.allowed()),
      Saved(saved),
      [plan](const Variable<T>& q, const Variable<T>& k, const Variable<T>& v, const Variable<T>& bias) {
        return detail::attention_composed(*plan, q, k, v, bias).output;
      },
      [plan](const Variable<T>& dy, Needs needs, const Variable<T>& q, const Variable<T>& k,
             const Variable<T>& v, const Variable<T>& bias, const Variable<T>& saved) -> Grads<T, 4> {
        auto grads = detail::empty_grads<T, 4>(needs);
        auto& [dq, dk, dv, dbias] = grads;
        Variable<T> dscores;
        if (dbias.defined()) dscores = detail::empty<T>(plan->scores);
        detail::attention_backward<T>(*plan, detail::data(dy),
                                      {detail::data(q), detail::data(k), detail::data(v)}, bias, saved,
                                      {detail::data_if_needed(dq), detail::data_if_needed(dk),
                                       detail::data_if_needed(dv), detail::data_if_needed(dscores)});
        if (dbias.defined()) dbias = detail::summed(dscores, bias.shape());
        return grads;
      });
}

#define XGRAD_INSTANTIATE(T)                                                                     \
  template Variable<T> scaled_dot_product_attention(const Variable<T>&, const Variable<T>&,      \
                                                    const Variable<T>&, const AttentionMask<T>&, \
                                                    AttentionOptions);

XGRAD_INSTANTIATE(float)
XGRAD_INSTANTIATE(double)

}  // namespace xgrad
