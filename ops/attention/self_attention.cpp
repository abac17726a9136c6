#include "self_attention.hpp"

#include <algorithm>
#include <array>
#include <numeric>
#include <optional>
#include <vector>

#include "../../base/detail/system/parallel.hpp"
#include "../../graph/fused.hpp"
#include "../../kernels/gemm/linear.hpp"
#include "../../kernels/low_precision/int8.hpp"
#include "../../kernels/thread_memory.hpp"
#include "../detail/kernel_grads.hpp"
#include "../index/indexing.hpp"
#include "../pointwise/broadcast.hpp"
#include "../product/detail/reduced_rows.hpp"
#include "../product/linear.hpp"
#include "../shape/shapes.hpp"
#include "detail/attention_call.hpp"
#include "detail/packed_self_attention.hpp"

namespace xgrad {
namespace {

constexpr const char* op_name = ops::self_attention.name;
constexpr std::size_t rows_in_cache = 48;

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
  /// From a row on; T may be const.
  template <class T>
  std::array<T*, 3> of(T* projected, std::size_t row) const {
    return {projected + row * widths[0], projected + begin(1) + row * widths[1],
            projected + begin(2) + row * widths[2]};
  }
};

template <class T>
Shape projected_shape(const Variable<T>& x, const char* part, const Projection<T>& projection) {
  const Shape& weight = projection.weight.shape();
  const Variable<T>& bias = projection.bias;
  if (weight.size() != 2 || x.dimension() < 2 || weight[1] != x.shape().back()) {
    detail::fail<ShapeError>(op_name, ": x must be (..., L, in) and the weight of ", part,
                             " (out, in), got x ", x.shape(), " and weight ", weight);
  }
  if (bias.defined() && bias.shape() != Shape{weight[0]}) {
    detail::fail<ShapeError>(op_name, ": the bias of ", part, " must be (", weight[0], "), got ",
                             bias.shape());
  }
  Shape shape = x.shape();
  shape.back() = weight[0];
  return shape;
}

/// Undefined for numbers of fewer bits.
template <class T>
const Variable<T>& floats(const Projection<T>& projection) {
  return detail::WeightAccess<T>::variable(projection.weight);
}

/// How many of the projections have numbers of this type.
template <class T>
std::ptrdiff_t count_of(DType dtype, const std::array<const Projection<T>*, 3>& projections) {
  const auto& [q, k, v] = projections;
  if (q->weight.is_trainable() && k->weight.is_trainable() && v->weight.is_trainable()) [[likely]]
    return 0;
  return std::count_if(projections.begin(), projections.end(),
                       [dtype](const Projection<T>* one) { return one->weight.dtype() == dtype; });
}

template <class T>
Variable<T> projected(const Variable<T>& x, const Projection<T>& by) {
  return linear(x, by.weight, by.bias);
}

/// Rows that attend to each other, from `row` on.
struct Block {
  detail::SharedPlan plan;
  std::size_t row;
};

/// The projections of rows of x to qkv; these are rounded once for all weights of 8-bit integers.
template <class T>
void project(const T* x, const std::array<const Projection<T>*, 3>& projections, const Projected& parts,
             T* qkv) {
  std::optional<kernels::Int8Rows> rounded;
  for (std::size_t part = 0; part < 3; ++part) {
    const auto& [weight, bias] = *projections[part];
    const kernels::Matrix<const T> rows(x, parts.rows, parts.in);
    const T* const added = bias.defined() ? detail::data(bias) : nullptr;
    T* const to = qkv + parts.begin(part);
    if constexpr (std::is_same_v<T, float>) {
      if (const kernels::Int8Matrix* const integers = detail::int8_matrix(weight)) [[unlikely]] {
        if (!rounded) rounded.emplace(rows, kernels::Int8Range::all);
        kernels::int8_linear_rows(*rounded, *integers, added, to);
        continue;
      }
    }
    const T* const numbers = detail::data(floats(*projections[part]));
    kernels::linear_rows<T>(rows, {numbers, parts.widths[part], parts.in}, added, to);
  }
}

/// How many blocks from `begin` on have some rows together, or all that are left.
template <class Blocks>
std::size_t blocks_of_rows(const Blocks& blocks, std::size_t begin, std::size_t rows) {
  std::size_t end = begin;
  for (std::size_t sum = 0; end < blocks.size() && sum < rows; ++end) sum += blocks[end].plan->sizes.q_len;
  return end - begin;
}

/// Projections and attention without a graph, for a few blocks at a time: what these attend to is then in the
/// second cache level. The products of 8-bit integers do not depend on the rows beside them.
template <class T, class Blocks>
void attend_in_cache(const Variable<T>& x, const std::array<const Projection<T>*, 3>& projections,
                     const Projected& parts, const Blocks& blocks, const Variable<T>& mask_bias,
                     std::size_t out_width, T* y) {
  std::vector<std::size_t> borders{0};
  while (borders.back() < blocks.size())
    borders.push_back(borders.back() + blocks_of_rows(blocks, borders.back(), rows_in_cache));
  kernels::parallel_for(borders.size() - 1, [&](std::size_t i, std::size_t) {
    struct SomeBlocks;
    const std::size_t first = blocks[borders[i]].row;
    const std::size_t end = borders[i + 1] < blocks.size() ? blocks[borders[i + 1]].row : parts.rows;
    const Projected some{end - first, parts.in, parts.widths};
    T* const qkv = kernels::thread_memory<T, SomeBlocks>(element_count(some.shape()));
    project(detail::data(x) + first * parts.in, projections, some, qkv);
    for (std::size_t k = borders[i]; k < borders[i + 1]; ++k) {
      const auto [queries, keys, values] = some.of<const T>(qkv, blocks[k].row - first);
      static_cast<void>(detail::attention_forward<T>(*blocks[k].plan, {queries, keys, values}, mask_bias,
                                                     false, y + blocks[k].row * out_width));
    }
  });
}

/// The projections of x, and attention in each block, as one node of the graph. `saved` has room for what
/// each block keeps. `compose` makes the same of other ops, from the projections and the bias of the mask.
template <class T, class Blocks, class Memories, class Compose, class... A>
Variable<T> attend(const Variable<T>& x, const std::array<const Projection<T>*, 3>& projections,
                   const Shape& out_shape, const Variable<T>& mask_bias, Blocks blocks, Memories saved,
                   Compose compose, const Attributes<A...>& attributes) {
  const auto& [q, k, v] = projections;
  const auto width = [](const Projection<T>& projection) { return projection.weight.shape()[0]; };
  const Projected parts{row_count(x.shape()), x.shape().back(), {width(*q), width(*k), width(*v)}};
  Variable<T> y = detail::empty<T>(out_shape, op_name), qkv;
  const bool recorded =
      will_record(x, floats(*q), floats(*k), floats(*v), q->bias, k->bias, v->bias, mask_bias);
  const std::ptrdiff_t integers = count_of(DType::I8, projections);
  const bool in_cache = !recorded && integers == 3 && blocks.size() >= 2 * kernels::available_threads() &&
                        parts.rows >= rows_in_cache * kernels::available_threads();
  if (in_cache) [[unlikely]] {
    attend_in_cache(x, projections, parts, blocks, mask_bias, out_shape.back(), detail::data(y));
  } else {
    qkv = detail::empty<T>(parts.shape(), op_name);
    project(detail::data(x), projections, parts, detail::data(qkv));
  }
  for (std::size_t i = 0; !in_cache && i < blocks.size(); ++i) {
    const auto& [plan, row] = blocks[i];
    const auto [queries, keys, values] = parts.of(detail::data(std::as_const(qkv)), row);
    saved[i] = detail::attention_forward<T>(*plan, {queries, keys, values}, mask_bias, recorded,
                                            detail::data(y) + row * out_shape.back());
  }
  using V = Variable<T>;
  if (integers > 0) [[unlikely]] {
    detail::refuse_gradient_of_integers(ops::int8_self_attention.name, recorded);
    if (detail::is_watched() && detail::single_ops)
      return compose(projected(x, *q), projected(x, *k), projected(x, *v), mask_bias);
    return record<T>(ops::int8_self_attention, std::move(y), Inputs(x, mask_bias), attributes, Saved(),
                     [](V, Needs) { return Grads<T, 2>(); });
  }
  return fused<T>(
      ops::self_attention, std::move(y),
      Inputs(x, floats(*q), floats(*k), floats(*v), Unread(q->bias), Unread(k->bias), Unread(v->bias),
             mask_bias),
      attributes, Saved(qkv, saved),
      [compose](const V& x, const V& wq, const V& wk, const V& wv, const V& bq, const V& bk, const V& bv,
                const V& mask_bias) {
        return compose(linear(x, wq, bq), linear(x, wk, bk), linear(x, wv, bv), mask_bias);
      },
      [blocks = std::move(blocks), parts](const V& dy, Needs needs, const V& x, const V& wq, const V& wk,
                                          const V& wv, const V&, const V&, const V&, const V& mask_bias,
                                          const V& qkv, const Memories& saved) -> Grads<T, 8> {
        auto grads = detail::empty_grads<T, 8>(needs);
        auto& [dx, dwq, dwk, dwv, dbq, dbk, dbv, dmask_bias] = grads;
        V dscores;
        if (dmask_bias.defined()) dscores = detail::empty<T>(blocks[0].plan->scores);
        V dqkv = detail::empty<T>(qkv.shape());
        T* const gradients = detail::data(dqkv);
        for (std::size_t i = 0; i < blocks.size(); ++i) {
          const auto& [plan, row] = blocks[i];
          const auto [queries, keys, values] = parts.of(detail::data(qkv), row);
          const auto [dq, dk, dv] = parts.of(gradients, row);
          detail::attention_backward<T>(*plan, detail::data(dy) + row * dy.shape().back(),
                                        {queries, keys, values}, mask_bias, saved[i],
                                        {dq, dk, dv, detail::data_if_needed(dscores)});
        }
        struct {
          const V& weight;
          V &dweight, &dbias;
        } projections[] = {{wq, dwq, dbq}, {wk, dwk, dbk}, {wv, dwv, dbv}};
        for (std::size_t part = 0; part < 3; ++part) {
          auto& [weight, dweight, dbias] = projections[part];
          const std::size_t width = parts.widths[part];
          kernels::linear_grad_rows<T>({gradients + parts.begin(part), parts.rows, width},
                                       {detail::data(x), parts.rows, parts.in},
                                       {detail::data(weight), width, parts.in},
                                       {.dx = detail::data_if_needed(dx),
                                        .adds_dx = part > 0,
                                        .dweight = detail::data_if_needed(dweight),
                                        .dbias = detail::data_if_needed(dbias)});
        }
        if (dmask_bias.defined()) dmask_bias = detail::summed(dscores, mask_bias.shape());
        return grads;
      });
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
  if (count_of<T>(DType::BF16, {&q, &k, &v}) > 0) [[unlikely]] {
    const Variable<T> values = projected(x, v), keys = projected(x, k);
    return scaled_dot_product_attention(projected(x, q), keys, values, attn_mask, options);
  }
  const detail::SharedPlan plan =
      detail::plan_attention<T>(op_name, q_shape, k_shape, v_shape, attn_mask, options);
  using V = Variable<T>;
  return attend<T>(
      x, {&q, &k, &v}, detail::output_shape(*plan, q_shape), attn_mask.bias(),
      std::array<Block, 1>{Block{plan, 0}}, std::array<V, 1>(),
      [plan](const V& q, const V& k, const V& v, const V& mask_bias) {
        return detail::attention_composed(*plan, q, k, v, mask_bias).output;
      },
      Attributes(options.num_heads, detail::kv_heads_attribute(*plan), plan->scale, options.is_causal,
                 options.window_left, options.window_right, detail::unless_zero(options.first_query),
                 options.num_keys, options.softcap, options.dropout_p, attn_mask.allowed(), std::nullopt));
}

template <class T>
Variable<T> detail::packed_self_attention(const Variable<T>& x, const Projection<std::type_identity_t<T>>& q,
                                          const Projection<std::type_identity_t<T>>& k,
                                          const Projection<std::type_identity_t<T>>& v,
                                          const std::vector<std::size_t>& lengths, AttentionOptions options) {
  const Shape q_shape = projected_shape(x, "q", q), k_shape = projected_shape(x, "k", k),
              v_shape = projected_shape(x, "v", v);
  if (count_of<T>(DType::BF16, {&q, &k, &v}) > 0) [[unlikely]] {
    const Variable<T> values = projected(x, v), keys = projected(x, k), queries = projected(x, q);
    std::vector<Variable<T>> parts;
    std::ptrdiff_t first = 0;
    for (const std::size_t length : lengths) {
      const auto count = static_cast<std::ptrdiff_t>(length);
      parts.push_back(scaled_dot_product_attention(narrow(queries, 0, first, count),
                                                   narrow(keys, 0, first, count),
                                                   narrow(values, 0, first, count), {}, options));
      first += count;
    }
    return cat(parts);
  }
  const auto some_rows = [](Shape shape, std::size_t rows) {
    shape[0] = rows;
    return shape;
  };
  std::vector<Block> blocks;
  std::size_t row = 0;
  for (const std::size_t length : lengths) {
    blocks.push_back({plan_attention<T>(op_name, some_rows(q_shape, length), some_rows(k_shape, length),
                                        some_rows(v_shape, length), {}, options),
                      row});
    row += length;
  }
  using V = Variable<T>;
  return attend<T>(
      x, {&q, &k, &v}, output_shape(*blocks.front().plan, q_shape), V(), blocks,
      std::vector<V>(blocks.size()),
      [blocks](const V& q, const V& k, const V& v, const V&) {
        std::vector<V> parts;
        for (const auto& [plan, row] : blocks) {
          const auto rows = [begin = static_cast<std::ptrdiff_t>(row),
                             count = static_cast<std::ptrdiff_t>(plan->sizes.q_len)](const V& all) {
            return narrow(all, 0, begin, count);
          };
          parts.push_back(attention_composed(*plan, rows(q), rows(k), rows(v), V()).output);
        }
        return cat(parts);
      },
      Attributes(options.num_heads, kv_heads_attribute(*blocks.front().plan), blocks.front().plan->scale,
                 options.is_causal, options.window_left, options.window_right,
                 detail::unless_zero(options.first_query), options.num_keys, options.softcap,
                 options.dropout_p, std::nullopt, lengths));
}

#define XGRAD_INSTANTIATE(T)                                                                            \
  template Variable<T> self_attention(const Variable<T>&, const Projection<T>&, const Projection<T>&,   \
                                      const Projection<T>&, const AttentionMask<T>&, AttentionOptions); \
  template Variable<T> detail::packed_self_attention(const Variable<T>&, const Projection<T>&,          \
                                                     const Projection<T>&, const Projection<T>&,        \
                                                     const std::vector<std::size_t>&, AttentionOptions);

XGRAD_INSTANTIATE(float)
XGRAD_INSTANTIATE(double)

}  // namespace xgrad
