// Operators of nodes that take the place of several.

#include <algorithm>
#include <limits>

#include "../../ops/attention/attention.hpp"
#include "../../ops/norm/layer_norm.hpp"
#include "../../ops/norm/softmax.hpp"
#include "../../ops/pointwise/where.hpp"
#include "../../ops/product/linear.hpp"
#include "../../ops/product/matmul.hpp"
#include "../../ops/shape/shapes.hpp"
#include "fusion.hpp"

namespace xgrad::onnx::detail {
namespace {

template <class T>
using Results = std::vector<Value<T>>;

template <class T>
void check_linear(const Arguments<T>& given) {
  const Shape& weight = given.floats(1).shape();
  given.check_product(given.floats(0).shape(), {weight[1], weight[0]});
}

/// Of x, a weight (out, in) and a bias (out).
template <class T>
Operator<T> linear_operator(const NodeDescription&) {
  return [](const Arguments<T>& given) -> Results<T> {
    check_linear(given);
    return {linear(given.floats(0), given.floats(1), given.floats_or_none(2))};
  };
}

template <class T>
Operator<T> linear_relu_operator(const NodeDescription&) {
  return [](const Arguments<T>& given) -> Results<T> {
    check_linear(given);
    return {linear_relu(given.floats(0), given.floats(1), given.floats(2))};
  };
}

/// Of x, what is added to it, a weight and a bias.
template <class T>
Operator<T> add_layer_normalization(const NodeDescription& node) {
  const std::int64_t axis = node.attributes.integer("axis", -1);
  const double epsilon = node.attributes.number("epsilon", 1e-5);
  node.attributes.ignore("stash_type");
  return [axis, epsilon](const Arguments<T>& given) -> Results<T> {
    const Variable<T>&x = given.floats(0), &residual = given.floats(1);
    const Variable<T>&weight = given.floats(2), &bias = given.floats(3);
    if (same_shape(x.shape(), residual.shape()))
      return {add_layer_norm(x, residual, normalized_shape(axis, x.shape()), weight, bias, epsilon)};
    given.check_broadcast({0, 1});
    const Variable<T> sum = x + residual;
    return {layer_norm(sum, normalized_shape(axis, sum.shape()), weight, bias, epsilon)};
  };
}

/// Softmax(scale q k^T + bias) v of each head, where x (batch, length, heads * width) holds heads side by
/// side. Where the mask is not true, a score is `lowest`, which is not -infinity: of a row without any true,
/// all weights are the same.
template <class T>
struct HeadsAttention {
  Variable<T> q, k, v;
  std::int64_t heads;
  double scale;
  Variable<T> bias;
  const Mask* mask;
  T lowest;

  Variable<T> operator()(const Arguments<T>& given) const {
    if (!is_regular()) return composed(given);
    const AttentionOptions options{.scale = scale, .num_heads = static_cast<std::size_t>(heads)};
    return scaled_dot_product_attention(q, k, v, attention_mask(), options);
  }

 private:
  /// With all axes of the scores, as one of fewer may be ambiguous.
  AttentionMask<T> attention_mask() const {
    const auto all_axes = [](const Shape& shape) {
      Shape all(4, 1);
      std::copy_backward(shape.begin(), shape.end(), all.end());
      return all;
    };
    if (mask == nullptr && (!bias.defined() || bias.dimension() == 4)) return bias;
    if (mask == nullptr) return reshape(bias, Dims(all_axes(bias.shape())));
    Mask allowed = *mask;
    allowed.reshape(all_axes(mask->shape()));
    return allowed;
  }

  /// Whether the kernel computes the same: nothing is stretched but the mask or the bias, of which each row
  /// shows something.
  bool is_regular() const {
    for (const Variable<T>* x : {&q, &k, &v})
      if (x->dimension() != 3 || x->shape(0) != q.shape(0)) return false;
    const Shape scores{q.shape(0), static_cast<std::size_t>(heads), q.shape(1), k.shape(1)};
    const Shape none, &shape = mask != nullptr ? mask->shape() : bias.defined() ? bias.shape() : none;
    if (shape.size() > scores.size()) return false;
    for (std::size_t axis = 0; axis < shape.size(); ++axis) {
      const std::size_t length = shape[axis];
      if (length != 1 && length != scores[scores.size() - shape.size() + axis]) return false;
    }
    const std::size_t length = shape.empty() ? 1 : shape.back();
    const auto shows_in_each_row = [length](const auto& array, const auto& is_shown) {
      for (std::size_t begin = 0; begin < array.size(); begin += length)
        if (std::none_of(array.data() + begin, array.data() + begin + length, is_shown)) return false;
      return true;
    };
    if (mask != nullptr) return shows_in_each_row(*mask, [](bool shown) { return shown; });
    return !bias.defined() ||
           shows_in_each_row(bias.value(), [](T x) { return x != -std::numeric_limits<T>::infinity(); });
  }

  Variable<T> composed(const Arguments<T>& given) const {
    const auto in_heads = [&](const Variable<T>& x) {
      const auto rows = static_cast<std::ptrdiff_t>(x.shape(0)),
                 length = static_cast<std::ptrdiff_t>(x.shape(1));
      return transpose(reshape(x, {rows, length, heads, -1}), 1, 2);
    };
    const auto product = [&](const Variable<T>& a, const Variable<T>& b) {
      given.check_product(a.shape(), b.shape());
      return matmul(a, b);
    };
    Variable<T> s = product(in_heads(q), mT(in_heads(k))) * static_cast<T>(scale);
    if (bias.defined() || mask != nullptr)
      given.check_result(broadcast_lengths(s.shape(), mask != nullptr ? mask->shape() : bias.shape()));
    if (bias.defined()) s = s + bias;
    if (mask != nullptr) s = where(*mask, s, Variable<T>(lowest));
    const Variable<T> y = transpose(product(softmax(s, -1), in_heads(v)), 1, 2);
    return reshape(y, {static_cast<std::ptrdiff_t>(y.shape(0)), static_cast<std::ptrdiff_t>(y.shape(1)), -1});
  }
};

/// Of q, k, v and a bias, the shape in heads, the scale, and a mask and what stands where it is not true.
template <class T>
Operator<T> attention_operator(const NodeDescription&) {
  return [](const Arguments<T>& given) -> Results<T> {
    return {HeadsAttention<T>{.q = given.floats(0),
                              .k = given.floats(1),
                              .v = given.floats(2),
                              .heads = given.list(4)[2],
                              .scale = given.floats(5).item(),
                              .bias = given.floats_or_none(3),
                              .mask = given.has(6) ? &given.conditions(6) : nullptr,
                              .lowest = given.has(7) ? given.floats(7).item() : T{0}}(given)};
  };
}

}  // namespace

template <class T>
const OperatorTable<T>& fused_operators() {
  static const OperatorTable<T> table{{ops::linear.name, linear_operator<T>},
                                      {ops::linear_relu.name, linear_relu_operator<T>},
                                      {ops::add_layer_norm.name, add_layer_normalization<T>},
                                      {ops::scaled_dot_product_attention.name, attention_operator<T>}};
  return table;
}

template const OperatorTable<float>& fused_operators();
template const OperatorTable<double>& fused_operators();

}  // namespace xgrad::onnx::detail
