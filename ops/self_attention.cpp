#include "self_attention.hpp"

#include <array>
#include <numeric>

#include "../graph/record.hpp"
#include "../kernels/linear.hpp"
#include "arithmetic.hpp"
#include "detail/attention_call.hpp"
#include "linear.hpp"

namespace xgrad {
namespace {

constexpr const char* name = "self_attention";

/// x (..., L, in) as the projections see it, and where their results lie: q, k and v (..., L, width), one
/// after the other in one array.
struct Projected {
  std::size_t rows, in;
  std::array<std::size_t, 3> widths;

  Shape shape() const { return {rows, std::accumulate(widths.begin(), widths.end(), std::size_t{0})}; }
  std::size_t begin(std::size_t part) const {
    return rows * std::accumulate(widths.begin(), widths.begin() + static_cast<std::ptrdiff_t>(part),
                                  std::size_t{0});
  }
  template <class T>
  detail::QueriesKeysValues<T> of(const T* projected) const {
    return {projected, projected + begin(1), projected + begin(2)};
  }
};

template <class T>
Shape projected_shape(const Variable<T>& x, const char* part, const Projection<T>& projection) {
  const Variable<T>&weight = projection.weight, &bias = projection.bias;
  if (weight.dimension() != 2 || x.dimension() < 2 || weight.shape()[1] != x.shape().back()) {
    detail::fail<ShapeError>(name, ": x must be (..., L, in) and the weight of ", part, " (out, in), got x ",
                             x.shape(), " and weight ", weight.shape());
  }
  if (bias.defined() && bias.shape() != Shape{weight.shape()[0]}) {
    detail::fail<ShapeError>(name, ": the bias of ", part, " must be (", weight.shape()[0], "), got ",
                             bias.shape());
  }
  Shape shape = x.shape();
  shape.back() = weight.shape()[0];
  return shape;
}

}  // namespace

template <class T>
Variable<T> self_attention(const Variable<T>& x, const Projection<std::type_identity_t<T>>& q,
                           const Projection<std::type_identity_t<T>>& k,
                           const Projection<std::type_identity_t<T>>& v,
                           const std::type_identity_t<AttentionMask<T>>& attn_mask,
                           AttentionOptions options) {
  const Shape q_shape = projected_shape(x, "q", q), k_shape = projected_shape(x, "k", k),
              v_shape = projected_shape(x, "v", v);
  const detail::AttentionPlan plan =
      detail::plan_attention<T>(name, q_shape, k_shape, v_shape, attn_mask, options);
  const Projected parts{
      row_count(x.shape()), x.shape().back(), {q_shape.back(), k_shape.back(), v_shape.back()}};
  Variable<T> qkv = detail::empty<T>(parts.shape(), name);
  const std::array<const Projection<T>*, 3> projections{&q, &k, &v};
  for (std::size_t part = 0; part < 3; ++part) {
    const Variable<T>&weight = projections[part]->weight, &bias = projections[part]->bias;
    kernels::linear_rows<T>(
        {detail::data(x), parts.rows, parts.in}, {detail::data(weight), parts.widths[part], parts.in},
        bias.defined() ? detail::data(bias) : nullptr, detail::data(qkv) + parts.begin(part));
  }
  Variable<T> y = detail::empty<T>(v_shape, name);
  const Variable<T>& mask_bias = attn_mask.bias();
  const bool recorded = will_record(x, q.weight, k.weight, v.weight, q.bias, k.bias, v.bias, mask_bias);
  const Variable<T> saved = detail::attention_forward<T>(plan, parts.of(detail::data(std::as_const(qkv))),
                                                         mask_bias, recorded, detail::data(y));
  using V = Variable<T>;
  return fused<T>(
      name, std::move(y),
      Inputs(x, q.weight, k.weight, v.weight, Unread(q.bias), Unread(k.bias), Unread(v.bias), mask_bias),
      Attributes("num_heads", options.num_heads, "scale", plan.scale, "is_causal", options.is_causal,
                 "dropout_p", options.dropout_p, "attn_mask", attn_mask.allowed()),
      Saved(qkv, saved),
      [plan](const V& x, const V& wq, const V& wk, const V& wv, const V& bq, const V& bk, const V& bv,
             const V& mask_bias) {
        return detail::attention_composed(plan, linear(x, wq, bq), linear(x, wk, bk), linear(x, wv, bv),
                                          mask_bias)
            .output;
      },
      [plan, parts](const V& dy, Needs needs, const V& x, const V& wq, const V& wk, const V& wv, const V&,
                    const V&, const V&, const V& mask_bias, const V& qkv, const V& saved) -> Grads<T, 8> {
        Grads<T, 8> grads;
        for (std::size_t i = 0; i < 7; ++i) {
          if (needs[i]) grads[i] = detail::empty<T>(needs.shape(i));
        }
        if (needs[7]) grads[7] = detail::empty<T>(plan.scores);
        const auto target = [&](std::size_t i) { return needs[i] ? detail::data(grads[i]) : nullptr; };
        V dqkv = detail::empty<T>(qkv.shape());
        T* const gradients = detail::data(dqkv);
        detail::attention_backward<T>(
            plan, detail::data(dy), parts.of(detail::data(qkv)), mask_bias, saved,
            {gradients, gradients + parts.begin(1), gradients + parts.begin(2), target(7)});
        const std::array<const V*, 3> weights{&wq, &wk, &wv};
        for (std::size_t part = 0; part < 3; ++part) {
          const std::size_t width = parts.widths[part];
          kernels::linear_grad_rows<T>(
              {gradients + parts.begin(part), parts.rows, width}, {detail::data(x), parts.rows, parts.in},
              {detail::data(*weights[part]), width, parts.in},
              {.dx = target(0), .adds_dx = part > 0, .dweight = target(1 + part), .dbias = target(4 + part)});
        }
        if (needs[7]) grads[7] = detail::summed(grads[7], needs.shape(7));
        return grads;
      });
}

#define XGRAD_INSTANTIATE(T)                                                                          \
  template Variable<T> self_attention(const Variable<T>&, const Projection<T>&, const Projection<T>&, \
                                      const Projection<T>&, const AttentionMask<T>&, AttentionOptions);

XGRAD_INSTANTIATE(float)
XGRAD_INSTANTIATE(double)

}  // namespace xgrad
