// Attention and what else ONNX Runtime fuses, and ONNX's own operator.

#include <algorithm>
#include <cmath>
#include <limits>
#include <optional>

#include "../../../ops/attention/attention.hpp"
#include "../../../ops/index/indexing.hpp"
#include "../../../ops/norm/layer_norm.hpp"
#include "../../../ops/pointwise/arithmetic.hpp"
#include "../../../ops/pointwise/elementwise.hpp"
#include "../../../ops/product/linear.hpp"
#include "../../../ops/product/matmul.hpp"
#include "../../../ops/shape/shapes.hpp"
#include "../arrays.hpp"
#include "../values.hpp"
#include "operators.hpp"

namespace xgrad::onnx::detail {
namespace {

using xgrad::detail::fail;

// ---- com.microsoft ----

/// gelu(x + bias).
template <class T, Gelu form>
Operator<T> bias_gelu(const NodeDescription&) {
  return [](const Arguments<T>& given) -> Results<T> {
    if (!given.has(1)) return {gelu(given.floats(0), form)};
    given.check_broadcast({0, 1});
    return {gelu(given.floats(0) + given.floats(1), form)};
  };
}

/// x sigmoid(alpha x).
template <class T>
Operator<T> quick_gelu(const NodeDescription& node) {
  const T alpha = static_cast<T>(node.attributes.number("alpha", 1.702));
  return [alpha](const Arguments<T>& given) -> Results<T> {
    const Variable<T>& x = given.floats(0);
    return {x * sigmoid(x * alpha)};
  };
}

template <class T>
Operator<T> fused_matmul(const NodeDescription& node) {
  const T alpha = static_cast<T>(node.attributes.number("alpha", 1));
  const bool trans_a = node.attributes.integer("transA", 0) != 0;
  const bool trans_b = node.attributes.integer("transB", 0) != 0;
  for (const char* name : {"transBatchA", "transBatchB"})
    if (node.attributes.integer(name, 0) != 0) fail<ValueError>(name, " is not supported");
  return [=](const Arguments<T>& given) -> Results<T> {
    const auto turned = [](const Variable<T>& x, bool is_turned) {
      return is_turned && x.dimension() > 1 ? mT(x) : x;
    };
    const Variable<T> a = turned(given.floats(0), trans_a), b = turned(given.floats(1), trans_b);
    given.check_product(a.shape(), b.shape());
    const Variable<T> y = matmul(a, b);
    return {alpha == 1 ? y : y * alpha};
  };
}

/// Which keys of each sequence are to be attended to, as a bias (batch, 1, 1, keys), from their numbers
/// (batch), from those and where they begin (2 batch), or from a mask (batch, keys) or (batch, queries, keys)
/// of numbers.
template <class T>
Variable<T> key_bias(const Ids& mask, std::size_t batch, std::size_t keys, T hidden) {
  Shape shape{batch, 1, 1, keys};
  if (mask.dimension() == 3) shape[2] = mask.shape()[1];
  const bool is_counts = mask.dimension() == 1 && (mask.size() == batch || mask.size() == 2 * batch);
  const Shape expected = mask.dimension() == 3 ? Shape{batch, shape[2], keys} : Shape{batch, keys};
  if (!is_counts && !same_shape(mask.shape(), expected))
    fail<ShapeError>("a mask of ", batch, " sequences of ", keys, " keys cannot be ", mask.shape());
  Array<T> bias = Array<T>::from_shape(shape);
  for (std::size_t i = 0; i < bias.size(); ++i) {
    const std::size_t sequence = i / keys;
    const auto key = static_cast<std::int64_t>(i % keys);
    const bool is_shown = is_counts ? key < mask.data()[sequence] &&
                                          (mask.size() == batch || key >= mask.data()[batch + sequence])
                                    : mask.data()[i] != 0;
    bias.data()[i] = is_shown ? T{0} : hidden;
  }
  return Variable<T>(std::move(bias));
}

/// The attributes of com.microsoft's operators.
struct FusedAttention {
  std::int64_t heads;
  std::optional<double> scale;
  double hidden;
  bool is_causal;

  explicit FusedAttention(NodeAttributes& attributes)
      : heads(attributes.integer("num_heads", 0)),
        hidden(attributes.number("mask_filter_value", -10000)),
        is_causal(attributes.integer("unidirectional", 0) != 0) {
    if (heads < 1) fail<ValueError>("num_heads must be at least 1, got ", heads);
    if (const double number = attributes.number("scale", 0); number != 0) scale = number;
    if (attributes.integer("do_rotary", 0) != 0) fail<ValueError>("do_rotary is not supported");
  }

  /// q, k and v (batch, length, heads * width) of a mask and a bias, which inputs of the node may be.
  template <class T>
  Variable<T> operator()(const Arguments<T>& given, const Variable<T>& q, const Variable<T>& k,
                         const Variable<T>& v, std::size_t mask, std::size_t bias) const {
    for (const Variable<T>* x : {&q, &k, &v})
      if (x->dimension() != 3)
        fail<ShapeError>("queries, keys and values must have 3 axes, got ", x->shape());
    given.check_result({q.shape(0), static_cast<std::size_t>(heads), q.shape(1), k.shape(1)});
    Variable<T> added;
    if (given.has(mask))
      added = key_bias(given.integers(mask), q.shape(0), k.shape(1), static_cast<T>(hidden));
    if (given.has(bias) && added.defined()) {
      given.check_result(broadcast_lengths(added.shape(), given.floats(bias).shape()));
      added = added + given.floats(bias);
    } else if (given.has(bias)) {
      added = given.floats(bias);
    }
    return scaled_dot_product_attention(
        q, k, v, added,
        {.is_causal = is_causal, .scale = scale, .num_heads = static_cast<std::size_t>(heads)});
  }
};

/// Of x, the weight (in, 3 width) of queries, keys and values, its bias, a mask, past keys and values, and a
/// bias of the scores.
template <class T>
Operator<T> attention_of_microsoft(const NodeDescription& node) {
  const FusedAttention attention(node.attributes);
  const auto widths = node.attributes.integers("qkv_hidden_sizes");
  if (node.makes(1) || node.makes(2)) fail<ValueError>("present keys and values are not supported");
  if (node.takes(4) || node.takes(6)) fail<ValueError>("past keys and values are not supported");
  return [attention, widths](const Arguments<T>& given) -> Results<T> {
    const Variable<T>&x = given.floats(0), &weight = given.floats(1);
    if (weight.dimension() != 2) fail<ShapeError>("the weight must be (in, out), got ", weight.shape());
    given.check_product(x.shape(), weight.shape());
    Variable<T> qkv = matmul(x, weight);
    if (given.has(2)) {
      given.check_result(broadcast_lengths(qkv.shape(), given.floats(2).shape()));
      qkv = qkv + given.floats(2);
    }
    std::vector<std::ptrdiff_t> lengths(3, static_cast<std::ptrdiff_t>(weight.shape(1) / 3));
    if (widths) lengths.assign(widths->begin(), widths->end());
    if (lengths.size() != 3) fail<ValueError>("qkv_hidden_sizes must be three, got ", lengths.size());
    const auto parts = split(qkv, lengths, -1);
    return {attention(given, parts[0], parts[1], parts[2], 3, 5)};
  };
}

/// Of queries, keys and values, their bias, a mask and a bias of the scores.
template <class T>
Operator<T> multi_head_attention(const NodeDescription& node) {
  const FusedAttention attention(node.attributes);
  if (node.makes(1) || node.makes(2)) fail<ValueError>("present keys and values are not supported");
  for (const std::size_t i : {6, 7, 8, 9})
    if (node.takes(i)) fail<ValueError>("past keys and values are not supported");
  return [attention](const Arguments<T>& given) -> Results<T> {
    std::array<Variable<T>, 3> qkv{given.floats(0), given.floats(1), given.floats(2)};
    for (const Variable<T>& x : qkv)
      if (x.dimension() != 3) fail<ShapeError>("queries, keys and values must have 3 axes, got ", x.shape());
    if (given.has(3)) {
      if (given.floats(3).dimension() != 1)
        fail<ShapeError>("the bias must have 1 axis, got ", given.floats(3).shape());
      std::ptrdiff_t begin = 0;
      for (Variable<T>& x : qkv) {
        const auto width = static_cast<std::ptrdiff_t>(x.shape().back());
        x = x + narrow(given.floats(3), 0, begin, width);
        begin += width;
      }
    }
    return {attention(given, qkv[0], qkv[1], qkv[2], 4, 5)};
  };
}

/// The normalized sum of the embeddings of ids, positions and types; how many ids of each sequence the mask
/// shows; the sum.
template <class T>
Operator<T> embed_layer_normalization(const NodeDescription& node) {
  const double epsilon = node.attributes.number("epsilon", 1e-12);
  node.attributes.ignore("mask_index_type");
  return [epsilon](const Arguments<T>& given) -> Results<T> {
    const Ids& ids = given.integers(0);
    if (ids.dimension() != 2) fail<ShapeError>("ids must be (batch, sequence), got ", ids.shape());
    const auto embedded = [&](const Variable<T>& table, const Ids& of) {
      if (table.dimension() != 2 || table.shape(1) != given.floats(2).shape().back())
        fail<ShapeError>("embeddings must have 2 axes and one width, got ", table.shape());
      Shape shape = of.shape();
      shape.push_back(table.shape(1));
      given.check_result(shape);
      return std::get<Variable<T>>(reshaped<T>(parts_at<T>(table, 0, places_of(of, table.shape(0))), shape));
    };
    Ids positions = Ids::from_shape({1, ids.shape()[1]});
    std::iota(positions.begin(), positions.end(), std::int64_t{0});
    if (given.has(8)) positions = given.integers(8);
    if (!same_shape(broadcast_lengths(ids.shape(), positions.shape()), ids.shape()))
      fail<ShapeError>("positions must broadcast to the ids ", ids.shape(), ", got ", positions.shape());
    Variable<T> sum = embedded(given.floats(2), ids) + embedded(given.floats(3), positions);
    if (given.has(1)) {
      if (!same_shape(given.integers(1).shape(), ids.shape()))
        fail<ShapeError>("types must have the shape of the ids ", ids.shape(), ", got ",
                         given.integers(1).shape());
      sum = sum + embedded(given.floats(4), given.integers(1));
    }
    Ids counts(Shape{ids.shape()[0]}, std::int64_t{0});
    if (given.has(7)) {
      const Ids& mask = given.integers(7);
      if (!same_shape(mask.shape(), ids.shape()))
        fail<ShapeError>("the mask must have the shape of the ids ", ids.shape(), ", got ", mask.shape());
      for (std::size_t i = 0; i < mask.size(); ++i)
        if (mask.data()[i] != 0) ++counts.data()[i / ids.shape()[1]];
    }
    return {layer_norm(sum, normalized_shape(-1, sum.shape()), given.floats(5), given.floats(6), epsilon),
            std::move(counts), sum};
  };
}

// ---- ONNX ----

/// Softmax(scale q k^T + mask) v of heads, (batch, heads, length, width) or side by side in (batch, length,
/// heads * width). https://onnx.ai/onnx/operators/onnx__Attention.html
template <class T>
Operator<T> attention_of_onnx(const NodeDescription& node) {
  NodeAttributes& attributes = node.attributes;
  const std::int64_t heads = attributes.integer("q_num_heads", 0),
                     kv_heads = attributes.integer("kv_num_heads", 0);
  const bool is_causal = attributes.integer("is_causal", 0) != 0;
  std::optional<double> scale;
  if (attributes.has("scale")) scale = attributes.number("scale", 1);
  if (attributes.number("softcap", 0) != 0) fail<ValueError>("softcap is not supported");
  check_precision(attributes, "softmax_precision");
  attributes.ignore("qk_matmul_output_mode");
  if (heads < 0 || kv_heads < 0) fail<ValueError>("numbers of heads must be at least 1");
  for (const std::size_t i : {1, 2, 3})
    if (node.makes(i)) fail<ValueError>("only the first output is supported");
  for (const std::size_t i : {4, 5})
    if (node.takes(i)) fail<ValueError>("past keys and values are not supported");
  if (node.takes(6)) fail<ValueError>("numbers of keys are not supported (nonpad_kv_seqlen)");
  return [=](const Arguments<T>& given) -> Results<T> {
    Variable<T> q = given.floats(0), k = given.floats(1), v = given.floats(2);
    const bool is_apart = q.dimension() == 4;
    const auto side_by_side = [&](const Variable<T>& x) {
      if (x.dimension() != q.dimension() || (x.dimension() != 3 && x.dimension() != 4))
        fail<ShapeError>("Q, K and V must have 3 or 4 axes, got ", q.shape(), ", ", k.shape(), " and ",
                         v.shape());
      return is_apart ? reshape(transpose(x, 1, 2), {x.shape(0), x.shape(2), x.shape(1) * x.shape(3)}) : x;
    };
    const std::size_t of_q = is_apart ? q.shape(1) : static_cast<std::size_t>(heads);
    const std::size_t of_k = is_apart && k.dimension() == 4 ? k.shape(1) : static_cast<std::size_t>(kv_heads);
    if (of_q == 0 || of_k == 0) fail<ValueError>("q_num_heads and kv_num_heads must be at least 1");
    const Variable<T> queries = side_by_side(q), keys = side_by_side(k), values = side_by_side(v);
    given.check_result({queries.shape(0), of_q, queries.shape(1), keys.shape(1)});
    AttentionMask<T> mask;
    if (given.has(3)) {
      Shape all(4, 1);
      const Shape& shape = shape_of<T>(given.value(3));
      if (shape.size() > 4) fail<ShapeError>("attn_mask must have at most 4 axes, got ", shape);
      std::copy_backward(shape.begin(), shape.end(), all.end());
      const Value<T> whole = reshaped<T>(given.value(3), all);
      if (const Mask* allowed = std::get_if<Mask>(&whole)) {
        mask = *allowed;
      } else if (const Variable<T>* added = std::get_if<Variable<T>>(&whole)) {
        mask = *added;
      } else {
        fail<ValueError>("attn_mask must hold floats or conditions, got integers");
      }
    }
    const Variable<T> y = scaled_dot_product_attention(
        queries, keys, values, mask,
        {.is_causal = is_causal, .scale = scale, .num_heads = of_q, .num_kv_heads = of_k});
    if (!is_apart) return {y};
    return {transpose(reshape(y, {y.shape(0), y.shape(1), of_q, y.shape(2) / of_q}), 1, 2)};
  };
}

}  // namespace

template <class T>
void add_attention_operators(OperatorTable<T>& table) {
  table["Attention"] = attention_of_onnx<T>;
  table["com.microsoft.Attention"] = attention_of_microsoft<T>;
  table["com.microsoft.MultiHeadAttention"] = multi_head_attention<T>;
  table["com.microsoft.EmbedLayerNormalization"] = embed_layer_normalization<T>;
  table["com.microsoft.BiasGelu"] = bias_gelu<T, Gelu::none>;
  table["com.microsoft.Gelu"] = bias_gelu<T, Gelu::none>;
  table["com.microsoft.FastGelu"] = bias_gelu<T, Gelu::tanh>;
  table["com.microsoft.QuickGelu"] = quick_gelu<T>;
  table["com.microsoft.FusedMatMul"] = fused_matmul<T>;
}

template void add_attention_operators(OperatorTable<float>&);
template void add_attention_operators(OperatorTable<double>&);

}  // namespace xgrad::onnx::detail
