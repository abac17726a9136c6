#include "transformer.hpp"

#include <xtensor/xbroadcast.hpp>
#include <xtensor/xmath.hpp>

#include "../ops/elementwise.hpp"
#include "../ops/indexing.hpp"
#include "../ops/layer_norm.hpp"
#include "../ops/linear.hpp"

namespace xgrad {
namespace {

/// True where a key may be attended to, (N, 1, L or 1, S); nothing if every key may.
template <class T>
AttentionMask<T> allowed(const AttentionPadding& padding, std::size_t batch, std::size_t queries,
                         std::size_t keys) {
  const auto check = [](const char* name, const Mask& mask, const Shape& expected) {
    if (mask.shape() != expected)
      detail::fail<ShapeError>("multi_head_attention: ", name, " must be ", expected, ", got ", mask.shape());
  };
  Mask ignored, unseen;
  if (padding.key_padding_mask) {
    check("key_padding_mask", *padding.key_padding_mask, {batch, keys});
    ignored = *padding.key_padding_mask;
    ignored.reshape({batch, std::size_t{1}, std::size_t{1}, keys});
  }
  if (padding.attn_mask) {
    check("attn_mask", *padding.attn_mask, {queries, keys});
    unseen = *padding.attn_mask;
    unseen.reshape({std::size_t{1}, std::size_t{1}, queries, keys});
  }
  if (padding.key_padding_mask && padding.attn_mask) return Mask(!(ignored || unseen));
  if (padding.key_padding_mask) return Mask(!ignored);
  if (padding.attn_mask) return Mask(!unseen);
  return {};
}

/// Refuses a parameter that is undefined or has another shape.
template <class T>
void check(const char* op, const char* name, const Variable<T>& parameter, const Shape& shape) {
  if (!parameter.defined()) detail::fail<GraphError>(op, ": ", name, " is undefined");
  if (!same_shape(parameter.shape(), shape)) {
    detail::fail<ShapeError>(op, ": ", name, " must be ", shape, ", got ", parameter.shape());
  }
}

}  // namespace

template <class T>
Variable<T> multi_head_attention(const Variable<T>& query, const Variable<T>& key, const Variable<T>& value,
                                 const MultiheadAttentionWeights<T>& weights, std::size_t num_heads,
                                 const AttentionPadding& padding) {
  const Shape &q = query.shape(), &k = key.shape();
  if (q.size() != 3 || k.size() != 3 || value.shape() != k || q[0] != k[0] || q[2] != k[2]) {
    detail::fail<ShapeError>(
        "multi_head_attention: query must be (N, L, E), key and value (N, S, E), got query ", q, ", key ", k,
        " and value ", value.shape());
  }
  const std::size_t features = q[2];
  check("multi_head_attention", "in_proj_weight", weights.in_proj_weight, {3 * features, features});
  check("multi_head_attention", "in_proj_bias", weights.in_proj_bias, {3 * features});
  check("multi_head_attention", "out_proj_weight", weights.out_proj_weight, {features, features});
  check("multi_head_attention", "out_proj_bias", weights.out_proj_bias, {features});
  if (num_heads == 0 || features % num_heads != 0) {
    detail::fail<ValueError>("multi_head_attention: num_heads must divide the features, got ", num_heads,
                             " and ", features);
  }
  const auto size = static_cast<std::ptrdiff_t>(features);
  const auto project = [&](const Variable<T>& x, std::ptrdiff_t part) {
    return linear(x, narrow(weights.in_proj_weight, 0, part * size, size),
                  narrow(weights.in_proj_bias, 0, part * size, size));
  };
  const Variable<T> heads =
      scaled_dot_product_attention(project(query, 0), project(key, 1), project(value, 2),
                                   allowed<T>(padding, q[0], q[1], k[1]), {.num_heads = num_heads});
  return linear(heads, weights.out_proj_weight, weights.out_proj_bias);
}

template <class T>
Variable<T> transformer_encoder_layer(const Variable<T>& src, const TransformerEncoderLayerWeights<T>& w,
                                      TransformerEncoderLayerOptions options,
                                      const AttentionPadding& padding) {
  constexpr const char* op = "transformer_encoder_layer";
  if (src.dimension() != 3) detail::fail<ShapeError>(op, ": src must be (N, L, E), got ", src.shape());
  const std::size_t features = src.shape()[2];
  const std::size_t inner = w.linear1_weight.defined() ? row_count(w.linear1_weight.shape()) : 0;
  check(op, "linear1_weight", w.linear1_weight, {inner, features});
  check(op, "linear1_bias", w.linear1_bias, {inner});
  check(op, "linear2_weight", w.linear2_weight, {features, inner});
  check(op, "linear2_bias", w.linear2_bias, {features});
  check(op, "norm1_weight", w.norm1_weight, {features});
  check(op, "norm1_bias", w.norm1_bias, {features});
  check(op, "norm2_weight", w.norm2_weight, {features});
  check(op, "norm2_bias", w.norm2_bias, {features});
  const auto attend = [&](const Variable<T>& x) {
    return multi_head_attention(x, x, x, w.self_attn, options.num_heads, padding);
  };
  const auto feed_forward = [&](const Variable<T>& x) {
    return linear(detail::linear_activated(x, w.linear1_weight, w.linear1_bias, options.activation),
                  w.linear2_weight, w.linear2_bias);
  };
  const auto norm = [&](const Variable<T>& x, const Variable<T>& weight, const Variable<T>& bias) {
    return layer_norm(x, features, weight, bias, options.eps);
  };
  if (options.norm_first) {
    const Variable<T> x = src + attend(norm(src, w.norm1_weight, w.norm1_bias));
    return x + feed_forward(norm(x, w.norm2_weight, w.norm2_bias));
  }
  const auto add_norm = [&](const Variable<T>& x, const Variable<T>& residual, const Variable<T>& weight,
                            const Variable<T>& bias) {
    return add_layer_norm(x, residual, features, weight, bias, options.eps);
  };
  const Variable<T> x = add_norm(attend(src), src, w.norm1_weight, w.norm1_bias);
  return add_norm(feed_forward(x), x, w.norm2_weight, w.norm2_bias);
}

#define XGRAD_INSTANTIATE(T)                                                                            \
  template Variable<T> multi_head_attention(const Variable<T>&, const Variable<T>&, const Variable<T>&, \
                                            const MultiheadAttentionWeights<T>&, std::size_t,           \
                                            const AttentionPadding&);                                   \
  template Variable<T> transformer_encoder_layer(const Variable<T>&,                                    \
                                                 const TransformerEncoderLayerWeights<T>&,              \
                                                 TransformerEncoderLayerOptions, const AttentionPadding&);

XGRAD_INSTANTIATE(float)
XGRAD_INSTANTIATE(double)

}  // namespace xgrad
