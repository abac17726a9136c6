#include <xgrad/ops/attention.hpp>

#include <cmath>
#include <limits>

#include <xtensor/xbroadcast.hpp>
#include <xtensor/xbuilder.hpp>

#include <xgrad/graph/record.hpp>
#include <xgrad/graph/shape_trace.hpp>
#include <xgrad/ops/arithmetic.hpp>
#include <xgrad/ops/dropout.hpp>
#include <xgrad/ops/kernels/attention.hpp>
#include <xgrad/ops/kernels/parallel.hpp>
#include <xgrad/ops/masked_fill.hpp>
#include <xgrad/ops/matmul.hpp>
#include <xgrad/ops/shapes.hpp>
#include <xgrad/ops/softmax.hpp>

namespace xgrad {
namespace {

constexpr const char* name = "scaled_dot_product_attention";

/// The sizes of one call, and the shape of its scores.
struct Plan {
  kernels::AttentionSizes sizes;
  std::size_t batch_axes;
  double scale;
  Shape scores;  // (..., L, S), or (..., H, L, S) with num_heads
};

Plan make_plan(const Shape& q, const Shape& k, const Shape& v, const AttentionOptions& options) {
  if (!(options.dropout_p >= 0 && options.dropout_p <= 1)) {
    detail::fail<ValueError>(name, ": dropout_p must be in [0, 1], got ", options.dropout_p);
  }
  const std::size_t rank = q.size(), heads = std::max<std::size_t>(options.num_heads, 1);
  const bool same_batch = rank >= 2 && k.size() == rank && v.size() == rank &&
                          std::equal(q.begin(), q.end() - 2, k.begin()) &&
                          std::equal(q.begin(), q.end() - 2, v.begin());
  if (!same_batch || k[rank - 1] != q[rank - 1] || k[rank - 2] != v[rank - 2]) {
    detail::fail<ShapeError>(name,
                             ": q (..., L, E), k (..., S, E) and v (..., S, Ev) must fit together, got q ", q,
                             ", k ", k, " and v ", v);
  }
  if (q[rank - 1] % heads != 0 || v[rank - 1] % heads != 0) {
    detail::fail<ShapeError>(name, ": the last axes of q and v must be divisible by num_heads ", heads,
                             ", got q ", q, " and v ", v);
  }
  Plan plan;
  plan.scores = Shape(q.begin(), q.end() - 2);
  plan.batch_axes = rank - 2;
  plan.sizes = {element_count(plan.scores), heads, q[rank - 2], k[rank - 2], q[rank - 1] / heads,
                v[rank - 1] / heads};
  const std::size_t head_dim = plan.sizes.head_dim;
  plan.scale = options.scale.value_or(head_dim > 0 ? 1 / std::sqrt(static_cast<double>(head_dim)) : 0);
  if (options.num_heads > 0) plan.scores.push_back(heads);
  plan.scores.push_back(plan.sizes.q_len);
  plan.scores.push_back(plan.sizes.k_len);
  return plan;
}

void check_mask(const Shape& mask, const Shape& scores) {
  if (mask.size() > scores.size() ||
      detail::broadcast_shape(name, scores, mask, "the scores", "attn_mask") != scores) {
    detail::fail<ShapeError>(name, ": attn_mask must broadcast to the scores ", scores, ", got ", mask);
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
    check_mask(mask.shape(), plan.scores);
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

template <class T>
kernels::AttentionRecord<T> kernel_record(Variable<T>& kept, bool keeps_probs) {
  T* const memory = kept.defined() ? detail::data(kept) : nullptr;
  return keeps_probs ? kernels::AttentionRecord<T>{.probs = memory}
                     : kernels::AttentionRecord<T>{.log_sums = memory};
}

template <class T>
Variable<T> scratch_memory(const kernels::AttentionSizes& sizes) {
  return detail::empty<T>(Shape{kernels::thread_count(), kernels::attention_scratch(sizes)}, name);
}

/// (..., L, H E) as (..., H, L, E); a trace shows it for the queries only.
template <class T>
Variable<T> split_heads(const Variable<T>& x, std::size_t heads, bool traced = false) {
  if (heads == 0) return x;
  Shape shape = x.shape();
  shape.back() = heads;
  shape.push_back(x.shape().back() / heads);
  const Variable<T> y = reshape(x, shape);
  const Variable<T> z = transpose(y, -3, -2);
  if (traced) {
    detail::trace_shape("Reshape", "Q_reshaped", y.shape(), "batch, seq, heads, d_k");
    detail::trace_shape("Transpose", "Q_heads", z.shape(), "batch, heads, seq, d_k");
  }
  return z;
}

template <class T>
Variable<T> merge_heads(const Variable<T>& x, std::size_t heads) {
  if (heads == 0) return x;
  const Variable<T> y = transpose(x, -3, -2);
  detail::trace_shape("Transpose", "Output_T", y.shape(), "batch, seq, heads, d_k");
  Shape shape(y.shape().begin(), y.shape().end() - 1);
  shape.back() = y.shape().back() * heads;
  const Variable<T> z = reshape(y, shape);
  detail::trace_shape("Flatten", "Concat", z.shape(), "batch, seq, d_model");
  return z;
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

}  // namespace

template <class T>
AttentionResult<T> attention_with_weights(const Variable<T>& q, const Variable<T>& k, const Variable<T>& v,
                                          const std::type_identity_t<AttentionMask<T>>& attn_mask,
                                          AttentionOptions options) {
  const Plan plan = make_plan(q.shape(), k.shape(), v.shape(), options);
  const std::size_t heads = options.num_heads;
  const Variable<T> queries = split_heads(q, heads, true);
  const Variable<T> keys = split_heads(k, heads);
  const Variable<T> values = split_heads(v, heads);

  Variable<T> scores = matmul(queries, transpose(keys, -2, -1)) * static_cast<T>(plan.scale);
  detail::trace_shape("Q @ K^T", "Scores", scores.shape(), "batch, heads, queries, keys");
  if (attn_mask.allowed() != nullptr) check_mask(attn_mask.allowed()->shape(), plan.scores);
  if (attn_mask.bias().defined()) {
    check_mask(attn_mask.bias().shape(), plan.scores);
    scores = scores + attn_mask.bias();
  }
  if (attn_mask.allowed() != nullptr || options.is_causal) {
    scores = masked_fill(scores, blocked(attn_mask.allowed(), options.is_causal, plan.scores),
                         -std::numeric_limits<T>::infinity());
  }
  const Mask dead = dead_rows(scores);
  Variable<T> weights = masked_fill(softmax(masked_fill(scores, dead, 0)), dead, 0);
  detail::trace_shape("Softmax", "Weights", weights.shape(), "batch, heads, queries, keys");
  weights = dropout(weights, options.dropout_p);
  const Variable<T> context = matmul(weights, values);
  detail::trace_shape("@ V", "Output", context.shape(), "batch, heads, seq, d_k");
  return {merge_heads(context, heads), weights};
}

template <class T>
Variable<T> scaled_dot_product_attention(const Variable<T>& q, const Variable<T>& k, const Variable<T>& v,
                                         const std::type_identity_t<AttentionMask<T>>& attn_mask,
                                         AttentionOptions options) {
  // the fused kernel has no gradient for a bias and keeps no dropout mask
  if (options.dropout_p > 0 || attn_mask.bias().requires_grad()) {
    return attention_with_weights(q, k, v, attn_mask, options).output;
  }
  const Plan plan = make_plan(q.shape(), k.shape(), v.shape(), options);
  const KernelMask<T> mask(attn_mask.allowed(), attn_mask.bias(), plan);
  const kernels::AttentionSizes& sizes = plan.sizes;
  Shape shape = q.shape();
  shape.back() = v.shape().back();
  Variable<T> y = detail::empty<T>(shape, name);
  const bool recorded = records(q, k, v), keeps_probs = sizes.q_len * sizes.k_len <= most_scores_kept;
  Variable<T> kept;
  if (recorded && keeps_probs) {
    kept = detail::empty<T>(Shape{sizes.batch, sizes.heads, sizes.q_len, sizes.k_len}, name);
  } else if (recorded) {
    kept = detail::empty<T>(Shape{sizes.batch, sizes.heads, sizes.q_len}, name);
  }
  Variable<T> scratch = scratch_memory<T>(sizes);
  kernels::attention_forward<T>(sizes, detail::data(q), detail::data(k), detail::data(v),
                                static_cast<T>(plan.scale), mask.view(), options.is_causal,
                                kernel_record(kept, keeps_probs), detail::data(scratch), detail::data(y));
  if (!recorded) return unrecorded<T>(name, std::move(y), on(q, k, v));
  return record<T>(
      name, std::move(y), on(q, k, v), save(q, k, v, kept, attn_mask.bias()),
      [plan, keeps_probs, allowed = attn_mask.shared_allowed(), options](
          Variable<T> dy, Needs needs, Variable<T> q, Variable<T> k, Variable<T> v, Variable<T> kept,
          Variable<T> bias) -> Grads<T, 3> {
        if (grad_enabled()) {
          const AttentionMask<T> mask = bias.defined() ? AttentionMask<T>(bias) : AttentionMask<T>(allowed);
          return replay<T, 3>(dy, needs, {q, k, v},
                              [&](const Variable<T>& q, const Variable<T>& k, const Variable<T>& v) {
                                return attention_with_weights(q, k, v, mask, options).output;
                              });
        }
        Grads<T, 3> grads;
        if (needs[0]) grads[0] = detail::empty<T>(q.shape());
        if (needs[1]) grads[1] = detail::empty<T>(k.shape());
        if (needs[2]) grads[2] = detail::empty<T>(v.shape());
        const auto target = [&](std::size_t i) { return needs[i] ? detail::data(grads[i]) : nullptr; };
        const KernelMask<T> mask(allowed.get(), bias, plan);
        Variable<T> scratch = scratch_memory<T>(plan.sizes);
        kernels::attention_backward<T>(plan.sizes, detail::data(dy), detail::data(q), detail::data(k),
                                       detail::data(v), static_cast<T>(plan.scale), mask.view(),
                                       options.is_causal, kernel_record(kept, keeps_probs),
                                       detail::data(scratch), target(0), target(1), target(2));
        return grads;
      });
}

template AttentionResult<float> attention_with_weights(const Variable<float>&, const Variable<float>&,
                                                       const Variable<float>&, const AttentionMask<float>&,
                                                       AttentionOptions);
template AttentionResult<double> attention_with_weights(const Variable<double>&, const Variable<double>&,
                                                        const Variable<double>&, const AttentionMask<double>&,
                                                        AttentionOptions);
template Variable<float> scaled_dot_product_attention(const Variable<float>&, const Variable<float>&,
                                                      const Variable<float>&, const AttentionMask<float>&,
                                                      AttentionOptions);
template Variable<double> scaled_dot_product_attention(const Variable<double>&, const Variable<double>&,
                                                       const Variable<double>&, const AttentionMask<double>&,
                                                       AttentionOptions);

}  // namespace xgrad
