#include "attention.hpp"

#include <array>
#include <cmath>
#include <limits>
#include <numeric>

#include <xtensor/xbroadcast.hpp>
#include <xtensor/xbuilder.hpp>

#include "../graph/record.hpp"
#include "../kernels/attention.hpp"
#include "../kernels/linear.hpp"
#include "arithmetic.hpp"
#include "dropout.hpp"
#include "linear.hpp"
#include "masked_fill.hpp"
#include "matmul.hpp"
#include "shapes.hpp"
#include "softmax.hpp"

namespace xgrad {
namespace {

constexpr const char* name = "scaled_dot_product_attention";

/// The sizes of one call, and the shape of its scores.
struct Plan {
  const char* op;
  kernels::AttentionSizes sizes;
  std::size_t batch_axes;
  double scale;
  bool causal;
  Shape scores;  // (..., L, S), or (..., H, L, S) with num_heads
};

Plan make_plan(const char* op, const Shape& q, const Shape& k, const Shape& v,
               const AttentionOptions& options) {
  if (!(options.dropout_p >= 0 && options.dropout_p <= 1)) {
    detail::fail<ValueError>(op, ": dropout_p must be in [0, 1], got ", options.dropout_p);
  }
  const std::size_t rank = q.size(), heads = std::max<std::size_t>(options.num_heads, 1);
  const bool same_batch = rank >= 2 && k.size() == rank && v.size() == rank &&
                          std::equal(q.begin(), q.end() - 2, k.begin()) &&
                          std::equal(q.begin(), q.end() - 2, v.begin());
  if (!same_batch || k[rank - 1] != q[rank - 1] || k[rank - 2] != v[rank - 2]) {
    detail::fail<ShapeError>(op,
                             ": q (..., L, E), k (..., S, E) and v (..., S, Ev) must fit together, got q ", q,
                             ", k ", k, " and v ", v);
  }
  if (q[rank - 1] % heads != 0 || v[rank - 1] % heads != 0) {
    detail::fail<ShapeError>(op, ": the last axes of q and v must be divisible by num_heads ", heads,
                             ", got q ", q, " and v ", v);
  }
  Plan plan;
  plan.op = op;
  plan.scores = Shape(q.begin(), q.end() - 2);
  plan.batch_axes = rank - 2;
  plan.causal = options.is_causal;
  plan.sizes = {element_count(plan.scores), heads, q[rank - 2], k[rank - 2], q[rank - 1] / heads,
                v[rank - 1] / heads};
  const std::size_t head_dim = plan.sizes.head_dim;
  plan.scale = options.scale.value_or(head_dim > 0 ? 1 / std::sqrt(static_cast<double>(head_dim)) : 0);
  if (options.num_heads > 0) plan.scores.push_back(heads);
  plan.scores.push_back(plan.sizes.q_len);
  plan.scores.push_back(plan.sizes.k_len);
  return plan;
}

void check_mask(const char* op, const Shape& mask, const Shape& scores) {
  if (mask.size() > scores.size() ||
      detail::broadcast_shape(op, scores, mask, "the scores", "attn_mask") != scores) {
    detail::fail<ShapeError>(op, ": attn_mask must broadcast to the scores ", scores, ", got ", mask);
  }
}

/// The strides of a mask that broadcasts to the scores, if all batch axes can be walked as one; else false.
template <class T>
bool mask_strides(const Shape& mask, const Plan& plan, kernels::MaskView<T>& view) {
  const detail::Strides strides = detail::broadcast_strides(mask, plan.scores);
  const std::size_t rank = plan.scores.size(), batch_axes = plan.batch_axes;
  view.key_stride = strides[rank - 1];
  view.query_stride = strides[rank - 2];
  view.head_stride = rank - 2 > batch_axes ? strides[rank - 3] : 0;
  view.batch_stride = 0;
  bool innermost = true;
  std::ptrdiff_t expected = 0;
  for (std::size_t axis = batch_axes; axis-- > 0;) {
    if (plan.scores[axis] == 1) continue;  // nothing is walked along it
    if (innermost) {
      view.batch_stride = expected = strides[axis];
      innermost = false;
    } else if (strides[axis] != expected) {
      return false;
    }
    expected *= static_cast<std::ptrdiff_t>(plan.scores[axis]);
  }
  return true;
}

/// A mask as the kernels read it: a view, of the mask itself or of its elements stretched where strides
/// cannot say how it broadcasts.
template <class T>
class KernelMask {
 public:
  KernelMask(const Mask* allowed, const Variable<T>& bias, const Plan& plan) {
    if (allowed != nullptr) {
      set(*allowed, stretched_, plan, &kernels::MaskView<T>::allowed);
    } else if (bias.defined()) {
      set(bias.value(), stretched_bias_, plan, &kernels::MaskView<T>::bias);
    }
  }
  KernelMask(const KernelMask&) = delete;
  KernelMask& operator=(const KernelMask&) = delete;

  const kernels::MaskView<T>& view() const { return view_; }

 private:
  template <class M>
  void set(const Array<M>& mask, std::optional<Array<M>>& stretched, const Plan& plan,
           const M* kernels::MaskView<T>::*elements) {
    check_mask(plan.op, mask.shape(), plan.scores);
    const Array<M>* used = &mask;
    if (!mask_strides(mask.shape(), plan, view_)) {
      used = &stretched.emplace(xt::broadcast(mask, plan.scores));
      mask_strides(used->shape(), plan, view_);
    }
    view_.*elements = used->data();
  }

  kernels::MaskView<T> view_;
  std::optional<Mask> stretched_;
  std::optional<Array<T>> stretched_bias_;
};

/// Up to this many scores of a head, keeping the probabilities for the backward costs less than computing
/// them again; their memory grows with the square of the sequence.
constexpr std::size_t most_scores_kept = std::size_t{1} << 19;

bool keeps_probs(const kernels::AttentionSizes& sizes) {
  return sizes.q_len * sizes.k_len <= most_scores_kept;
}

template <class T>
kernels::AttentionRecord<T> kernel_record(const Plan& plan, Variable<T>& kept) {
  T* const memory = kept.defined() ? detail::data(kept) : nullptr;
  return keeps_probs(plan.sizes) ? kernels::AttentionRecord<T>{.probs = memory}
                                 : kernels::AttentionRecord<T>{.scales = memory};
}

/// Memory for the threads of one call of a kernel.
template <class T>
class Scratch {
 public:
  explicit Scratch(const Plan& plan)
      : count_(kernels::attention_workers(plan.sizes)),
        memory_(detail::empty<T>(Shape{count_, kernels::attention_scratch(plan.sizes)}, name)) {}

  kernels::AttentionWorkers<T> workers() { return {count_, detail::data(memory_)}; }

 private:
  std::size_t count_;
  Variable<T> memory_;
};

/// Computes out, and returns what the backward has to get: undefined unless recorded.
template <class T>
Variable<T> forward(const Plan& plan, const AttentionMask<T>& attn_mask, bool recorded, const T* q,
                    const T* k, const T* v, T* out) {
  const kernels::AttentionSizes& sizes = plan.sizes;
  const KernelMask<T> mask(attn_mask.allowed(), attn_mask.bias(), plan);
  Variable<T> kept;
  if (recorded && keeps_probs(sizes)) {
    kept = detail::empty<T>(Shape{sizes.batch, sizes.heads, sizes.q_len, sizes.k_len}, name);
  } else if (recorded) {
    kept = detail::empty<T>(Shape{sizes.batch, sizes.heads, sizes.q_len, 2}, name);
  }
  Scratch<T> scratch(plan);
  kernels::attention_forward<T>(sizes, q, k, v, static_cast<T>(plan.scale), mask.view(), plan.causal,
                                kernel_record(plan, kept), scratch.workers(), out);
  return kept;
}

/// Computes dq, dk and dv, those that are not null.
template <class T>
void backward(const Plan& plan, const AttentionMask<T>& attn_mask, Variable<T>& kept, const T* dout,
              const T* q, const T* k, const T* v, T* dq, T* dk, T* dv) {
  const KernelMask<T> mask(attn_mask.allowed(), attn_mask.bias(), plan);
  Scratch<T> scratch(plan);
  kernels::attention_backward<T>(plan.sizes, dout, q, k, v, static_cast<T>(plan.scale), mask.view(),
                                 plan.causal, kernel_record(plan, kept), scratch.workers(), dq, dk, dv);
}

/// The mask as the backward gets it back: `allowed` was captured, the bias saved.
template <class T>
AttentionMask<T> mask_of(const std::shared_ptr<const Mask>& allowed, const Variable<T>& bias) {
  return bias.defined() ? AttentionMask<T>(bias) : AttentionMask<T>(allowed);
}

/// True where the fused kernel would not do: it has no gradient for a bias and keeps no dropout mask.
template <class T>
bool must_compose(const AttentionMask<T>& mask, const AttentionOptions& options) {
  return options.dropout_p > 0 || mask.bias().requires_grad();
}

/// (..., L, H E) as (..., H, L, E).
template <class T>
Variable<T> split_heads(const Variable<T>& x, std::size_t heads) {
  if (heads == 0) return x;
  Shape shape = x.shape();
  shape.back() = heads;
  shape.push_back(x.shape().back() / heads);
  return transpose(reshape(x, shape), -3, -2);
}

template <class T>
Variable<T> merge_heads(const Variable<T>& x, std::size_t heads) {
  if (heads == 0) return x;
  const Variable<T> y = transpose(x, -3, -2);
  Shape shape(y.shape().begin(), y.shape().end() - 1);
  shape.back() = y.shape().back() * heads;
  return reshape(y, shape);
}

/// True where the key is out of the query's reach, for scores that have this shape.
Mask blocked(const Mask* allowed, bool is_causal, const Shape& scores) {
  Mask result = xt::zeros<bool>(scores);
  if (allowed != nullptr) result = !xt::broadcast(*allowed, scores);
  if (!is_causal) return result;
  const std::size_t L = scores[scores.size() - 2], S = scores[scores.size() - 1];
  for (std::size_t i = 0; i < result.size(); ++i) {
    if (i % S > i / S % L) result.data()[i] = true;
  }
  return result;
}

/// True on the rows of scores that are -inf throughout: queries that may attend to nothing.
template <class T>
Mask dead_rows(const Variable<T>& scores) {
  Shape shape = scores.shape();
  const std::size_t S = shape.back();
  shape.back() = 1;
  Mask dead = Mask::from_shape(shape);
  for (std::size_t r = 0; r < dead.size(); ++r) {
    const T* row = scores.value().data() + r * S;
    dead.data()[r] = std::all_of(row, row + S, [](T s) { return s == -std::numeric_limits<T>::infinity(); });
  }
  return dead;
}

constexpr const char* self_name = "self_attention";

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
};

template <class T>
Shape projected_shape(const Variable<T>& x, const char* part, const Projection<T>& projection) {
  const Variable<T>&weight = projection.weight, &bias = projection.bias;
  if (weight.dimension() != 2 || x.dimension() < 2 || weight.shape()[1] != x.shape().back()) {
    detail::fail<ShapeError>(self_name, ": x must be (..., L, in) and the weight of ", part,
                             " (out, in), got x ", x.shape(), " and weight ", weight.shape());
  }
  if (bias.defined() && bias.shape() != Shape{weight.shape()[0]}) {
    detail::fail<ShapeError>(self_name, ": the bias of ", part, " must be (", weight.shape()[0], "), got ",
                             bias.shape());
  }
  Shape shape = x.shape();
  shape.back() = weight.shape()[0];
  return shape;
}

template <class T>
Variable<T> self_attention_composed(const Variable<T>& x, const Variable<T>& wq, const Variable<T>& wk,
                                    const Variable<T>& wv, const Variable<T>& bq, const Variable<T>& bk,
                                    const Variable<T>& bv, const AttentionMask<T>& mask,
                                    AttentionOptions options) {
  return attention_with_weights(linear(x, wq, bq), linear(x, wk, bk), linear(x, wv, bv), mask, options)
      .output;
}

}  // namespace

template <class T>
AttentionResult<T> attention_with_weights(const Variable<T>& q, const Variable<T>& k, const Variable<T>& v,
                                          const std::type_identity_t<AttentionMask<T>>& attn_mask,
                                          AttentionOptions options) {
  const Plan plan = make_plan(name, q.shape(), k.shape(), v.shape(), options);
  const std::size_t heads = options.num_heads;
  const Variable<T> queries = split_heads(q, heads);
  const Variable<T> keys = split_heads(k, heads);
  const Variable<T> values = split_heads(v, heads);

  Variable<T> scores = matmul(queries, transpose(keys, -2, -1)) * static_cast<T>(plan.scale);
  if (attn_mask.allowed() != nullptr) check_mask(name, attn_mask.allowed()->shape(), plan.scores);
  if (attn_mask.bias().defined()) {
    check_mask(name, attn_mask.bias().shape(), plan.scores);
    scores = scores + attn_mask.bias();
  }
  if (attn_mask.allowed() != nullptr || options.is_causal) {
    scores = masked_fill(scores, blocked(attn_mask.allowed(), options.is_causal, plan.scores),
                         -std::numeric_limits<T>::infinity());
  }
  const Mask dead = dead_rows(scores);
  Variable<T> weights = masked_fill(softmax(masked_fill(scores, dead, 0)), dead, 0);
  weights = dropout(weights, options.dropout_p);
  const Variable<T> context = matmul(weights, values);
  return {merge_heads(context, heads), weights};
}

template <class T>
Variable<T> scaled_dot_product_attention(const Variable<T>& q, const Variable<T>& k, const Variable<T>& v,
                                         const std::type_identity_t<AttentionMask<T>>& attn_mask,
                                         AttentionOptions options) {
  if (must_compose(attn_mask, options)) return attention_with_weights(q, k, v, attn_mask, options).output;
  const Plan plan = make_plan(name, q.shape(), k.shape(), v.shape(), options);
  Shape shape = q.shape();
  shape.back() = v.shape().back();
  Variable<T> y = detail::empty<T>(shape, name);
  const bool recorded = will_record(q, k, v);
  const Variable<T> kept =
      forward(plan, attn_mask, recorded, detail::data(q), detail::data(k), detail::data(v), detail::data(y));
  return record<T>(
      name, std::move(y), Inputs(q, k, v),
      Attributes("num_heads", options.num_heads, "scale", plan.scale, "is_causal", options.is_causal,
                 "dropout_p", options.dropout_p, "attn_mask", attn_mask.allowed()),
      Saved(q, k, v, kept, attn_mask.bias()),
      [plan, allowed = attn_mask.shared_allowed(), options](Variable<T> dy, Needs needs, Variable<T> q,
                                                            Variable<T> k, Variable<T> v, Variable<T> kept,
                                                            Variable<T> bias) -> Grads<T, 3> {
        const AttentionMask<T> mask = mask_of(allowed, bias);
        if (grad_enabled()) {
          return detail::replay<T, 3>(dy, needs, {q, k, v},
                                      [&](const Variable<T>& q, const Variable<T>& k, const Variable<T>& v) {
                                        return attention_with_weights(q, k, v, mask, options).output;
                                      });
        }
        Grads<T, 3> grads;
        if (needs[0]) grads[0] = detail::empty<T>(q.shape());
        if (needs[1]) grads[1] = detail::empty<T>(k.shape());
        if (needs[2]) grads[2] = detail::empty<T>(v.shape());
        const auto target = [&](std::size_t i) { return needs[i] ? detail::data(grads[i]) : nullptr; };
        backward(plan, mask, kept, detail::data(std::as_const(dy)), detail::data(std::as_const(q)),
                 detail::data(std::as_const(k)), detail::data(std::as_const(v)), target(0), target(1),
                 target(2));
        return grads;
      });
}

template <class T>
Variable<T> self_attention(const Variable<T>& x, const Projection<std::type_identity_t<T>>& q,
                           const Projection<std::type_identity_t<T>>& k,
                           const Projection<std::type_identity_t<T>>& v,
                           const std::type_identity_t<AttentionMask<T>>& attn_mask,
                           AttentionOptions options) {
  const Shape q_shape = projected_shape(x, "q", q), k_shape = projected_shape(x, "k", k),
              v_shape = projected_shape(x, "v", v);
  const Plan plan = make_plan(self_name, q_shape, k_shape, v_shape, options);
  if (must_compose(attn_mask, options)) {
    return self_attention_composed(x, q.weight, k.weight, v.weight, q.bias, k.bias, v.bias, attn_mask,
                                   options);
  }
  const Projected parts{
      row_count(x.shape()), x.shape().back(), {q_shape.back(), k_shape.back(), v_shape.back()}};
  Variable<T> qkv = detail::empty<T>(parts.shape(), self_name);
  const std::array<const Projection<T>*, 3> projections{&q, &k, &v};
  for (std::size_t part = 0; part < 3; ++part) {
    const Variable<T>& bias = projections[part]->bias;
    kernels::linear_rows(detail::data(x), detail::data(projections[part]->weight),
                         bias.defined() ? detail::data(bias) : nullptr, detail::data(qkv) + parts.begin(part),
                         parts.rows, parts.in, parts.widths[part]);
  }
  Variable<T> y = detail::empty<T>(v_shape, self_name);
  const bool recorded = will_record(x, q.weight, k.weight, v.weight, q.bias, k.bias, v.bias);
  const T* const elements = detail::data(std::as_const(qkv));
  const Variable<T> kept = forward(plan, attn_mask, recorded, elements, elements + parts.begin(1),
                                   elements + parts.begin(2), detail::data(y));
  const Inputs inputs(x, q.weight, k.weight, v.weight, q.bias, k.bias, v.bias);
  return record<T>(
      self_name, std::move(y), inputs,
      Attributes("num_heads", options.num_heads, "scale", plan.scale, "is_causal", options.is_causal,
                 "dropout_p", options.dropout_p, "attn_mask", attn_mask.allowed()),
      Saved(x, q.weight, k.weight, v.weight, q.bias, k.bias, v.bias, qkv, kept, attn_mask.bias()),
      [plan, parts, allowed = attn_mask.shared_allowed(), options](
          Variable<T> dy, Needs needs, Variable<T> x, Variable<T> wq, Variable<T> wk, Variable<T> wv,
          Variable<T> bq, Variable<T> bk, Variable<T> bv, Variable<T> qkv, Variable<T> kept,
          Variable<T> mask_bias) -> Grads<T, 7> {
        const AttentionMask<T> mask = mask_of(allowed, mask_bias);
        if (grad_enabled()) {
          return detail::replay<T, 7>(dy, needs, {x, wq, wk, wv, bq, bk, bv}, [&](const auto&... inputs) {
            return self_attention_composed<T>(inputs..., mask, options);
          });
        }
        Variable<T> dqkv = detail::empty<T>(qkv.shape());
        T* const gradients = detail::data(dqkv);
        const T* const elements = detail::data(std::as_const(qkv));
        backward(plan, mask, kept, detail::data(std::as_const(dy)), elements, elements + parts.begin(1),
                 elements + parts.begin(2), gradients, gradients + parts.begin(1),
                 gradients + parts.begin(2));
        const std::array<const Variable<T>*, 3> weights{&wq, &wk, &wv};
        Grads<T, 7> grads;
        if (needs[0]) grads[0] = detail::empty<T>(x.shape());
        for (std::size_t part = 0; part < 3; ++part) {
          const std::size_t dweight = 1 + part, dbias = 4 + part;
          if (needs[dweight]) grads[dweight] = detail::empty<T>(needs.shape(dweight));
          if (needs[dbias]) grads[dbias] = detail::empty<T>(needs.shape(dbias));
          const auto target = [&](std::size_t i) { return needs[i] ? detail::data(grads[i]) : nullptr; };
          kernels::linear_grad_rows(gradients + parts.begin(part), detail::data(std::as_const(x)),
                                    detail::data(*weights[part]), target(0), /*adds_dx=*/part > 0,
                                    target(dweight), target(dbias), parts.rows, parts.in, parts.widths[part]);
        }
        return grads;
      });
}

#define XGRAD_INSTANTIATE(T)                                                                          \
  template AttentionResult<T> attention_with_weights(const Variable<T>&, const Variable<T>&,          \
                                                     const Variable<T>&, const AttentionMask<T>&,     \
                                                     AttentionOptions);                               \
  template Variable<T> scaled_dot_product_attention(const Variable<T>&, const Variable<T>&,           \
                                                    const Variable<T>&, const AttentionMask<T>&,      \
                                                    AttentionOptions);                                \
  template Variable<T> self_attention(const Variable<T>&, const Projection<T>&, const Projection<T>&, \
                                      const Projection<T>&, const AttentionMask<T>&, AttentionOptions);

XGRAD_INSTANTIATE(float)
XGRAD_INSTANTIATE(double)

}  // namespace xgrad
