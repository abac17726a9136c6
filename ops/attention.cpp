#include "attention.hpp"

#include "../graph/record.hpp"
#include "arithmetic.hpp"
#include "attention_call.hpp"

namespace xgrad {

template <class T>
Variable<T> scaled_dot_product_attention(const Variable<T>& q, const Variable<T>& k, const Variable<T>& v,
                                         const std::type_identity_t<AttentionMask<T>>& attn_mask,
                                         AttentionOptions options) {
  constexpr const char* name = "scaled_dot_product_attention";
  detail::AttentionPlan plan =
      detail::plan_attention<T>(name, q.shape(), k.shape(), v.shape(), attn_mask, options);
  Shape shape = q.shape();
  shape.back() = v.shape().back();
  Variable<T> y = detail::empty<T>(shape, name);
  const Variable<T>& bias = attn_mask.bias();
  const bool recorded = records(q, k, v, bias);
  const Variable<T> saved = detail::attention_forward<T>(
      plan, {detail::data(q), detail::data(k), detail::data(v)}, bias, recorded, detail::data(y));
  if (!recorded) return unrecorded<T>(name, std::move(y), on(q, k, v, bias));
  return record<T>(
      name, std::move(y), on(q, k, v, bias), save(q, k, v, bias, saved),
      [plan = std::move(plan)](Variable<T> dy, Needs needs, Variable<T> q, Variable<T> k, Variable<T> v,
                               Variable<T> bias, Variable<T> saved) -> Grads<T, 4> {
        if (grad_enabled()) {
          return replay<T, 4>(dy, needs, {q, k, v, bias}, [&](const auto&... inputs) {
            return detail::attention_composed<T>(plan, inputs...).output;
          });
        }
        Grads<T, 4> grads;
        for (std::size_t i = 0; i < 3; ++i) {
          if (needs[i]) grads[i] = detail::empty<T>(needs.shape(i));
        }
        if (needs[3]) grads[3] = detail::empty<T>(plan.scores);
        const auto target = [&](std::size_t i) { return needs[i] ? detail::data(grads[i]) : nullptr; };
        const Variable<T>&queries = q, &keys = k, &values = v;
        detail::attention_backward<T>(plan, detail::data(std::as_const(dy)),
                                      {detail::data(queries), detail::data(keys), detail::data(values)}, bias,
                                      saved, {target(0), target(1), target(2), target(3)});
        if (needs[3]) grads[3] = sum_to(grads[3], needs.shape(3));
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
