#include "attention_call.hpp"

#include <cmath>

#include "../../../base/detail/arrays/mt19937.hpp"
#include "../../../base/random.hpp"

namespace xgrad::detail {
namespace {

/// Up to this many scores of a head, keeping the probabilities for the backward costs less than computing
/// them again; their memory grows with the square of the sequence.
constexpr std::size_t most_scores_kept = std::size_t{1} << 19;

/// Capped scores are computed again in any case, for the slope of their cap.
bool keeps_probs(const AttentionPlan& plan) {
  return plan.sizes.q_len * plan.sizes.k_len <= most_scores_kept && plan.softcap == 0;
}

/// `memory` is const in the backward.
template <class T>
kernels::AttentionRecord<T> kernel_record(const AttentionPlan& plan, T* memory) {
  return keeps_probs(plan) ? kernels::AttentionRecord<T>{.probs = memory}
                           : kernels::AttentionRecord<T>{.statistics = memory};
}

template <class T>
kernels::AttentionInput<T> kernel_input(const AttentionPlan& plan, const KernelMask<T>& mask,
                                        const QueriesKeysValues<T>& from) {
  kernels::DropoutView<T> dropout;
  if (plan.kept) dropout = {plan.kept->data(), dropout_scale<T>(plan.dropout_p)};
  return {plan.sizes,
          plan.layout,
          from.q,
          from.k,
          from.v,
          static_cast<T>(plan.scale),
          static_cast<T>(plan.softcap),
          mask.view(),
          plan.window,
          dropout};
}

/// With p = 1, dropout draws nothing.
Array<std::uint8_t> drawn_dropout(const AttentionPlan& plan) {
  check_count(plan.op, plan.scores);
  const std::size_t rows = row_count(plan.scores), cols = plan.sizes.k_len;
  if (plan.dropout_p < 1) return bernoulli_bits(rows, cols, 1 - plan.dropout_p);
  return xt::zeros<std::uint8_t>(Shape{rows, kernels::bytes_of_bits(cols)});
}

/// Memory for the threads of one call of a kernel.
template <class T>
class Scratch {
 public:
  explicit Scratch(const AttentionPlan& plan)
      : count_(kernels::attention_workers(plan.sizes)),
        memory_(empty<T>(
            Shape{count_, kernels::attention_scratch(plan.sizes, plan.window, plan.softcap != 0)}, plan.op)) {
  }

  kernels::AttentionWorkers<T> workers() { return {count_, data(memory_)}; }

 private:
  std::size_t count_;
  Variable<T> memory_;
};

}  // namespace

template <class T>
SharedPlan plan_attention(const char* op, const Shape& q, const Shape& k, const Shape& v,
                          const AttentionMask<T>& mask, const AttentionOptions& options,
                          std::optional<std::size_t> row) {
  if (!(options.dropout_p >= 0 && options.dropout_p <= 1))
    fail<ValueError>(op, ": dropout_p must be in [0, 1], got ", options.dropout_p);
  const std::size_t rank = q.size(), heads = std::max<std::size_t>(options.num_heads, 1);
  const std::size_t kv_heads = options.num_kv_heads > 0 ? options.num_kv_heads : heads;
  if (heads % kv_heads != 0) {
    fail<ValueError>(op, ": num_kv_heads must divide num_heads, got num_kv_heads ", kv_heads,
                     " and num_heads ", options.num_heads);
  }
  const bool same_batch = rank >= 2 && k.size() == rank && v.size() == rank &&
                          std::equal(q.begin(), q.end() - 2, k.begin()) &&
                          std::equal(q.begin(), q.end() - 2, v.begin());
  if (!same_batch || k[rank - 1] * (heads / kv_heads) != q[rank - 1] || k[rank - 2] != v[rank - 2]) {
    fail<ShapeError>(op, ": q (..., L, E), k (..., S, E) and v (..., S, Ev) must fit together, got q ", q,
                     ", k ", k, " and v ", v,
                     kv_heads == heads
                         ? std::string()
                         : join({", with ", text(heads), " heads of q and ", text(kv_heads), " of k and v"}));
  }
  if (q[rank - 1] % heads != 0 || v[rank - 1] % kv_heads != 0) {
    fail<ShapeError>(op, ": the last axes of q and v must be divisible by ",
                     kv_heads == heads ? "num_heads " : "num_heads and num_kv_heads ", heads,
                     kv_heads == heads ? std::string() : join({" and ", text(kv_heads)}), ", got q ", q,
                     " and v ", v);
  }
  const std::size_t rows = k[rank - 2], keys = options.num_keys.value_or(rows);
  if (keys > rows)
    fail<ValueError>(op, ": num_keys must be at most the rows of k and v, got ", keys, " and k ", k);
  if (options.softcap && !(*options.softcap > 0 && std::isfinite(*options.softcap)))
    fail<ValueError>(op, ": softcap must be above 0 and finite, got ", *options.softcap);
  const auto shared = std::allocate_shared<AttentionPlan>(PoolAllocator<AttentionPlan>());
  AttentionPlan& plan = *shared;
  plan.op = op;
  plan.scores = Shape(q.begin(), q.end() - 2);
  plan.batch_axes = rank - 2;
  plan.window = {options.window_left.value_or(kernels::KeyWindow::unlimited),
                 options.is_causal ? 0 : options.window_right.value_or(kernels::KeyWindow::unlimited),
                 std::min(options.first_query, kernels::KeyWindow::most_first)};
  plan.softcap = options.softcap.value_or(0);
  plan.dropout_p = options.dropout_p;
  plan.sizes = {element_count(plan.scores), heads, kv_heads, q[rank - 2], keys, q[rank - 1] / heads,
                v[rank - 1] / kv_heads};
  const auto rows_of = [&](const Shape& x) {
    return kernels::AttentionRows{x[rank - 2], row.value_or(x[rank - 1])};
  };
  plan.layout = {rows_of(q), rows_of(k), rows_of(v)};
  const std::size_t head_dim = plan.sizes.head_dim;
  plan.scale = options.scale.value_or(head_dim > 0 ? 1 / std::sqrt(static_cast<double>(head_dim)) : 0);
  if (options.num_heads > 0) plan.scores.push_back(heads);
  plan.scores.push_back(plan.sizes.q_len);
  plan.scores.push_back(plan.sizes.k_len);
  check_mask(op, mask, plan.scores, plan.batch_axes);
  plan.allowed = mask.shared_allowed();
  if (plan.dropout_p > 0) plan.kept = std::make_shared<const Array<std::uint8_t>>(drawn_dropout(plan));
  return shared;
}

std::optional<std::size_t> kv_heads_attribute(const AttentionPlan& plan) {
  if (plan.sizes.kv_heads == plan.sizes.heads) return std::nullopt;
  return plan.sizes.kv_heads;
}

Shape output_shape(const AttentionPlan& plan, Shape q) {
  q.back() = plan.sizes.heads * plan.sizes.v_dim;
  return q;
}

template <class T>
Variable<T> attention_forward(const AttentionPlan& plan, const QueriesKeysValues<T>& from,
                              const Variable<T>& bias, bool recorded, T* out) {
  const kernels::AttentionSizes& sizes = plan.sizes;
  const KernelMask<T> mask(plan.allowed.get(), bias, plan.scores, plan.batch_axes);
  Variable<T> saved;
  if (recorded) {
    saved =
        empty<T>(Shape{sizes.batch, sizes.heads, sizes.q_len, keeps_probs(plan) ? sizes.k_len : 2}, plan.op);
  }
  Scratch<T> scratch(plan);
  kernels::attention_forward<T>(kernel_input(plan, mask, from),
                                kernel_record(plan, recorded ? data(saved) : nullptr), scratch.workers(),
                                out);
  return saved;
}

template <class T>
void attention_backward(const AttentionPlan& plan, const T* dout, const QueriesKeysValues<T>& from,
                        const Variable<T>& bias, const Variable<T>& saved,
                        const kernels::AttentionGrads<T>& grads) {
  const KernelMask<T> mask(plan.allowed.get(), bias, plan.scores, plan.batch_axes);
  Scratch<T> scratch(plan);
  kernels::attention_backward<T>(dout, kernel_input(plan, mask, from), kernel_record(plan, data(saved)),
                                 scratch.workers(), grads);
}

#define XGRAD_INSTANTIATE(T)                                                                    \
  template SharedPlan plan_attention(const char*, const Shape&, const Shape&, const Shape&,     \
                                     const AttentionMask<T>&, const AttentionOptions&,          \
                                     std::optional<std::size_t>);                               \
  template Variable<T> attention_forward(const AttentionPlan&, const QueriesKeysValues<T>&,     \
                                         const Variable<T>&, bool, T*);                         \
  template void attention_backward(const AttentionPlan&, const T*, const QueriesKeysValues<T>&, \
                                   const Variable<T>&, const Variable<T>&,                      \
                                   const kernels::AttentionGrads<T>&);

XGRAD_INSTANTIATE(float)
XGRAD_INSTANTIATE(double)

}  // namespace xgrad::detail
