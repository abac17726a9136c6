#include "attention.hpp"

#include "../graph/fused.hpp"
#include "arithmetic.hpp"
#include "detail/attention_call.hpp"

namespace xgrad {

template <class T>
Variable<T> scaled_dot_product_attention(const Variable<T>& q, const Variable<T>& k, const Variable<T>& v,
                                         const std::type_identity_t<AttentionMask<T>>& attn_mask,
                                         AttentionOptions options) {
  constexpr const char* name = "scaled_dot_product_attention";
  const detail::SharedPlan plan =
      detail::plan_attention<T>(name, q.shape(), k.shape(), v.shape(), attn_mask, options);
  Shape shape = q.shape();
  shape.back() = v.shape().back();
  Variable<T> y = detail::empty<T>(shape, name);
  const Variable<T>& bias = attn_mask.bias();
  const Variable<T> saved =
      detail::attention_forward<T>(*plan, {detail::data(q), detail::data(k), detail::data(v)}, bias,
                                   will_record(q, k, v, bias), detail::data(y));
  return fused<T>(
      name, std::move(y), Inputs(q, k, v, bias),
      Attributes("num_heads", options.num_heads, "scale", plan->scale, "is_causal", options.is_causal,
                 "dropout_p", options.dropout_p, "attn_mask", attn_mask.allowed()),
      Saved(saved),
      [plan](const Variable<T>& q, const Variable<T>& k, const Variable<T>& v, const Variable<T>& bias) {
        return detail::attention_composed(*plan, q, k, v, bias).output;
      },
      [plan](const Variable<T>& dy, Needs needs, const Variable<T>& q, const Variable<T>& k,
             const Variable<T>& v, const Variable<T>& bias, const Variable<T>& saved) -> Grads<T, 4> {
        Grads<T, 4> grads;
        for (std::size_t i = 0; i < 3; ++i) {
          if (needs[i]) grads[i] = detail::empty<T>(needs.shape(i));
        }
        if (needs[3]) grads[3] = detail::empty<T>(plan->scores);
        const auto target = [&](std::size_t i) { return needs[i] ? detail::data(grads[i]) : nullptr; };
        detail::attention_backward<T>(*plan, detail::data(dy),
                                      {detail::data(q), detail::data(k), detail::data(v)}, bias, saved,
                                      {target(0), target(1), target(2), target(3)});
        if (needs[3]) grads[3] = detail::summed(grads[3], needs.shape(3));
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
