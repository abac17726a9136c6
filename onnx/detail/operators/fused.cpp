// Operators of nodes that take the place of several.

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <memory>
#include <optional>

#include "../../../graph/record.hpp"
#include "../../../ops/attention/attention.hpp"
#include "../../../ops/index/embedding.hpp"
#include "../../../ops/index/where.hpp"
#include "../../../ops/norm/layer_norm.hpp"
#include "../../../ops/norm/softmax.hpp"
#include "../../../ops/product/detail/int8_product.hpp"
#include "../../../ops/product/linear.hpp"
#include "../../../ops/product/matmul.hpp"
#include "../../../ops/shape/shapes.hpp"
#include "../fusion.hpp"
#include "../values.hpp"
#include "quantization.hpp"

namespace xgrad::onnx::detail {
namespace {

using xgrad::detail::fail;

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

/// x with a number in the place of nan.
template <class T>
Variable<T> nan_replaced(const Variable<T>& x, const Variable<T>& number) {
  return where(mapped<bool>(x.value(), [](T element) { return std::isnan(element); }), number, x);
}

/// The lengths that a list asks for: 0 is that of x, -1 what is left.
Shape resolved(const std::vector<std::int64_t>& list, const Shape& x) {
  Shape shape;
  std::optional<std::size_t> open;
  for (std::size_t i = 0; i < list.size(); ++i) {
    if (list[i] < -1 || (list[i] == -1 && open) || (list[i] == 0 && i >= x.size()))
      fail<ShapeError>("a shape ", to_string(Dims(list.begin(), list.end())), " does not fit x ", x);
    if (list[i] == -1) open = i;
    shape.push_back(list[i] == 0 ? x[i] : list[i] == -1 ? 1 : static_cast<std::size_t>(list[i]));
  }
  check_count(shape, std::numeric_limits<std::size_t>::max() / 2);
  const std::size_t known = element_count(shape), all = element_count(x);
  if (open && known != 0 && all % known == 0) shape[*open] = all / known;
  if (element_count(shape) != all)
    fail<ShapeError>("a shape ", to_string(Dims(list.begin(), list.end())), " does not fit x ", x);
  return shape;
}

/// Softmax(scale q k^T + bias) v of each head, where x (batch, length, heads * width) holds heads side by
/// side: the nodes of a pattern, some of which may be missing. Where the mask is not true, a score is
/// `lowest`; nan among the weights becomes a number where the graph says so.
template <class T>
class HeadsAttention {
 public:
  explicit HeadsAttention(const Arguments<T>& given)
      : given_(given),
        q_(given.floats(0)),
        k_(given.floats(1)),
        v_(given.floats(2)),
        bias_(given.floats_or_none(3)),
        mask_(given.has(mask_at) ? &given.conditions(mask_at) : nullptr) {
    if (!given.has(more_bias_at)) return;
    given.check_broadcast({3, more_bias_at});
    bias_ = bias_ + given.floats(more_bias_at);
  }

  /// That of the result in heads (batch, heads, length, width).
  Shape shape_in_heads() const {
    Shape k = turned(heads_of(1), {0, 2, 3, 1});
    if (given_.has(k_rows_at)) {
      Shape rows = resolved(given_.list(k_rows_at), turned(heads_of(1), {0, 2, 1, 3}));
      std::swap(rows[rows.size() - 2], rows.back());
      k = resolved(given_.list(k_columns_at), rows);
    }
    Shape scores = product_lengths(turned(heads_of(0), {0, 2, 1, 3}), k);
    if (bias_.defined()) scores = broadcast_lengths(scores, bias_.shape());
    if (mask_ != nullptr) scores = broadcast_lengths(scores, mask_->shape());
    return product_lengths(scores, turned(heads_of(2), {0, 2, 1, 3}));
  }

  Variable<T> operator()() const {
    if (!is_regular()) return composed();
    const AttentionOptions options{.scale = scale(), .num_heads = heads_of(0)[2]};
    return scaled_dot_product_attention(q_, k_, v_, attention_mask(), options);
  }

 private:
  // the inputs behind q, k, v and the bias
  enum Input : std::size_t {
    heads_at = 4,  // of q, k and v
    joined_at = 7,
    scale_at,
    divisor_at,
    q_scale_at,
    k_scale_at,
    mask_at,
    lowest_at,
    k_rows_at,
    k_columns_at,
    nan_at,
    more_bias_at,
    apart_at
  };

  const Variable<T>& x(std::size_t i) const { return i == 0 ? q_ : i == 1 ? k_ : v_; }
  Shape heads_of(std::size_t i) const { return resolved(given_.list(heads_at + i), x(i).shape()); }

  static Shape turned(const Shape& shape, const std::array<std::size_t, 4>& perm) {
    if (shape.size() != 4) fail<ShapeError>("heads must have 4 axes, got ", shape);
    return {shape[perm[0]], shape[perm[1]], shape[perm[2]], shape[perm[3]]};
  }

  double scale() const {
    double product = given_.has(divisor_at) ? 1 / static_cast<double>(given_.floats(divisor_at).item()) : 1;
    for (const std::size_t i : {scale_at, q_scale_at, k_scale_at})
      if (given_.has(i)) product *= static_cast<double>(given_.floats(i).item());
    return product;
  }

  /// With all axes of the scores, as one of fewer may be ambiguous.
  AttentionMask<T> attention_mask() const {
    const auto all_axes = [](const Shape& shape) {
      Shape all(4, 1);
      std::copy_backward(shape.begin(), shape.end(), all.end());
      return all;
    };
    if (mask_ == nullptr && (!bias_.defined() || bias_.dimension() == 4)) return bias_;
    if (mask_ == nullptr) return reshape(bias_, Dims(all_axes(bias_.shape())));
    Mask allowed = *mask_;
    allowed.reshape(all_axes(mask_->shape()));
    return allowed;
  }

  /// Whether the kernel computes the same: shapes do nothing but tell heads apart and join them again,
  /// nothing is stretched but the mask or the bias, and each row shows something unless nan is replaced.
  bool is_regular() const {
    for (std::size_t i = 0; i < 3; ++i)
      if (x(i).dimension() != 3 || x(i).shape(0) != q_.shape(0)) return false;
    for (const std::size_t i : {scale_at, divisor_at, q_scale_at, k_scale_at, lowest_at, nan_at}) {
      if (given_.has(i) && (given_.floats(i).size() != 1 || given_.floats(i).requires_grad() ||
                            given_.floats(i).dimension() > 1))
        return false;
    }
    return has_regular_shapes() && shows_enough();
  }

  bool has_regular_shapes() const {
    const std::array<Shape, 3> shapes{heads_of(0), heads_of(1), heads_of(2)};
    for (std::size_t i = 0; i < 3; ++i) {
      const Shape& shape = shapes[i];
      if (shape.size() != 4 || shape[0] != x(i).shape(0) || shape[1] != x(i).shape(1) ||
          shape[2] != shapes[0][2] || shape[2] == 0)
        return false;
    }
    const std::size_t batch = q_.shape(0), heads = shapes[0][2], width = shapes[1][3], keys = k_.shape(1);
    if (given_.has(k_rows_at)) {
      const Shape turned{batch, heads, keys, width};
      if (resolved(given_.list(k_rows_at), turned) != Shape{batch * heads, keys, width} ||
          resolved(given_.list(k_columns_at), {batch * heads, width, keys}) !=
              Shape{batch, heads, width, keys})
        return false;
    }
    const Shape apart{batch, heads, q_.shape(1), shapes[2][3]};
    if (given_.has(apart_at) && resolved(given_.list(apart_at), apart) != apart) return false;
    return resolved(given_.list(joined_at), {batch, q_.shape(1), heads, shapes[2][3]}) ==
           Shape{batch, q_.shape(1), heads * shapes[2][3]};
  }

  bool shows_enough() const {
    const Shape scores{q_.shape(0), heads_of(0)[2], q_.shape(1), k_.shape(1)};
    const Shape none, &shape = mask_ != nullptr ? mask_->shape() : bias_.defined() ? bias_.shape() : none;
    if (shape.size() > scores.size()) return false;
    for (std::size_t axis = 0; axis < shape.size(); ++axis) {
      const std::size_t length = shape[axis];
      if (length != 1 && length != scores[scores.size() - shape.size() + axis]) return false;
    }
    constexpr T infinity = std::numeric_limits<T>::infinity();
    const T lowest = given_.has(lowest_at) ? given_.floats(lowest_at).item() : -infinity;
    if (!(lowest < T{-1e30F})) return false;
    const bool gives_nan = mask_ == nullptr || lowest == -infinity;
    if (given_.has(nan_at) && gives_nan) return given_.floats(nan_at).item() == 0;
    const std::size_t length = shape.empty() ? 1 : shape.back();
    const auto shows_in_each_row = [length](const auto& array, const auto& is_shown) {
      for (std::size_t begin = 0; begin < array.size(); begin += length)
        if (std::none_of(array.data() + begin, array.data() + begin + length, is_shown)) return false;
      return true;
    };
    if (mask_ != nullptr) return shows_in_each_row(*mask_, [](bool shown) { return shown; });
    return !bias_.defined() || shows_in_each_row(bias_.value(), [=](T x) { return x != -infinity; });
  }

  /// Node by node.
  Variable<T> composed() const {
    const auto in_heads = [&](std::size_t i) {
      return permute(reshape(x(i), Dims(heads_of(i))), {0, 2, 1, 3});
    };
    const auto product = [&](const Variable<T>& a, const Variable<T>& b) {
      given_.check_product(a.shape(), b.shape());
      return matmul(a, b);
    };
    const auto stretched_by = [&](const Variable<T>& a, const Shape& other) {
      given_.check_result(broadcast_lengths(a.shape(), other));
      return a;
    };
    const auto times = [&](const Variable<T>& a, std::size_t i) {
      return given_.has(i) ? stretched_by(a, given_.floats(i).shape()) * given_.floats(i) : a;
    };
    Variable<T> k = in_heads(1);
    if (given_.has(k_rows_at)) {
      const Variable<T> rows = mT(reshape(k, Dims(resolved(given_.list(k_rows_at), k.shape()))));
      k = reshape(rows, Dims(resolved(given_.list(k_columns_at), rows.shape())));
    } else {
      k = mT(k);
    }
    Variable<T> s = times(product(times(in_heads(0), q_scale_at), times(k, k_scale_at)), scale_at);
    if (given_.has(divisor_at))
      s = stretched_by(s, given_.floats(divisor_at).shape()) / given_.floats(divisor_at);
    if (bias_.defined()) s = stretched_by(s, bias_.shape()) + bias_;
    if (mask_ != nullptr) s = where(*mask_, stretched_by(s, mask_->shape()), given_.floats(lowest_at));
    Variable<T> weights = softmax(s, -1);
    if (given_.has(nan_at)) weights = nan_replaced(weights, given_.floats(nan_at));
    Variable<T> apart = product(weights, in_heads(2));
    if (given_.has(apart_at)) apart = reshape(apart, Dims(resolved(given_.list(apart_at), apart.shape())));
    const Variable<T> y = permute(apart, {0, 2, 1, 3});
    return reshape(y, Dims(resolved(given_.list(joined_at), y.shape())));
  }

  const Arguments<T>& given_;
  const Variable<T>&q_, &k_, &v_;
  Variable<T> bias_;
  const Mask* mask_;
};

template <class T>
Operator<T> attention_operator(const NodeDescription&) {
  return [](const Arguments<T>& given) -> Results<T> { return {HeadsAttention<T>(given)()}; };
}

template <class T>
Operator<T> without_nan_operator(const NodeDescription&) {
  return [](const Arguments<T>& given) -> Results<T> {
    return {nan_replaced(given.floats(0), given.floats(1))};
  };
}

template <class T>
Operator<T> attention_shape_operator(const NodeDescription& node) {
  const std::int64_t start = node.attributes.integer("start", 0);
  const std::int64_t end = node.attributes.integer("end", std::numeric_limits<std::int64_t>::max());
  return [=](const Arguments<T>& given) -> Results<T> {
    return {part_of_shape(HeadsAttention<T>(given).shape_in_heads(), start, end)};
  };
}

/// The rows of a table of embeddings, of which that of padding gets no gradient.
template <class T>
Operator<T> embedding_operator(const NodeDescription& node) {
  const std::int64_t padding = node.attributes.integer("padding_idx", 0);
  return [padding](const Arguments<T>& given) -> Results<T> {
    const Variable<T>& table = given.floats(0);
    Ids ids = given.integers(1);
    Shape result = ids.shape();
    result.push_back(table.shape(1));
    given.check_result(result);
    const std::vector<std::size_t> places = places_of(ids, table.shape(0));
    std::copy(places.begin(), places.end(), ids.data());
    return {embedding(ids, table, {.padding_idx = padding})};
  };
}

// ---- Products of 8-bit integers ----

constexpr std::int32_t of_signed = 128;  // what 0 of signed bytes is among unsigned ones

/// A byte of a tensor as an integer from 0 to 255.
std::int32_t unsigned_byte(const Tensor& tensor, std::size_t i) {
  const auto byte = std::to_integer<std::int32_t>(tensor.view.bytes[i]);
  return tensor.type == data_type::int8 ? byte ^ of_signed : byte;
}

/// A weight (in, out) of bytes, turned, with its zero point or those of its columns. Its scales are not in
/// it.
xgrad::detail::Int8Product packed_weight(const Tensor& weight, const Tensor& zero_point) {
  const std::size_t cols = weight.view.shape[0], rows = weight.view.shape[1];
  std::vector<std::int8_t> values(rows * cols);
  std::vector<std::int32_t> zeros(rows);
  for (std::size_t r = 0; r < rows; ++r) {
    zeros[r] = unsigned_byte(zero_point, zero_point.view.bytes.size() == 1 ? 0 : r) - of_signed;
    for (std::size_t c = 0; c < cols; ++c)
      values[r * cols + c] = static_cast<std::int8_t>(unsigned_byte(weight, c * rows + r) - of_signed);
  }
  const bool has_zeros = std::any_of(zeros.begin(), zeros.end(), [](std::int32_t zero) { return zero != 0; });
  return {values, rows, cols,
          has_zeros ? std::span<const std::int32_t>(zeros) : std::span<const std::int32_t>()};
}

/// Of x, the scales of a weight of bytes, a bias, and the scale of x, without which x gets the scale and the
/// zero point of DynamicQuantizeLinear. Scales and bias have gradients.
Operator<float> integer_linear_operator(const NodeDescription& node) {
  const Tensor& weight = *node.attributes.tensor("weight");
  const xgrad::detail::Int8Product product = packed_weight(weight, *node.attributes.tensor("weight_zero"));
  const Tensor* const x_zero = node.attributes.tensor("x_zero");
  const std::int32_t fixed_zero = x_zero == nullptr ? 0 : unsigned_byte(*x_zero, 0);
  return [product, fixed_zero](const Arguments<float>& given) -> Results<float> {
    const Variable<float>&x = given.floats(0), &weight_scale = given.floats(1);
    const Variable<float> bias = given.floats_or_none(2);
    const std::size_t in = product.cols(), out = product.rows();
    if (x.dimension() == 0 || x.shape().back() != in)
      fail<ShapeError>("the last axis of x must have ", in, " elements, got x ", x.shape());
    Shape shape = x.shape();
    shape.back() = out;
    given.check_result(shape);
    float x_scale;
    std::int32_t zero = fixed_zero;
    const std::span<const float> elements(xgrad::detail::data(x), x.size());
    if (given.has(3)) {
      x_scale = given.floats(3).item();
    } else {
      const auto [least, largest] = xgrad::detail::extremes_with_zero(elements);
      const DynamicScale<float> found(least, largest);
      x_scale = found.scale;
      zero = static_cast<std::int32_t>(found.zero_point);
    }
    Variable<float> y(Array<float>::from_shape(shape));
    const Variable<float> scales = weight_scale * Variable<float>(Array<float>(Shape{out}, x_scale));
    const bool will_record = xgrad::will_record(weight_scale, bias);
    const bool is_added = bias.defined() && !will_record;
    const std::vector<float> ones(will_record ? out : 0, 1.0F);
    product.multiply(elements, x_scale, zero, will_record ? ones.data() : xgrad::detail::data(scales),
                     is_added ? xgrad::detail::data(bias) : nullptr, xgrad::detail::data(y));
    if (!will_record) return {std::move(y)};
    y = y * scales;
    return {bias.defined() ? y + bias : y};
  };
}

/// The lengths of the axes that perm names, from `start` to `end`, of x, or of x in the shape of input 1.
template <class T>
Operator<T> turned_shape_operator(const NodeDescription& node) {
  const std::vector<std::int64_t> perm =
      node.attributes.integers("perm").value_or(std::vector<std::int64_t>());
  const std::int64_t start = node.attributes.integer("start", 0);
  const std::int64_t end = node.attributes.integer("end", std::numeric_limits<std::int64_t>::max());
  return [=](const Arguments<T>& given) -> Results<T> {
    Shape x = shape_of<T>(given.value(0));
    if (given.has(1)) x = resolved(given.list(1), x);
    const auto rank = static_cast<std::int64_t>(x.size());
    std::vector<std::int64_t> sorted = perm;
    std::sort(sorted.begin(), sorted.end());
    for (std::int64_t axis = 0; axis < rank; ++axis) {
      if (sorted.size() != x.size() || sorted[static_cast<std::size_t>(axis)] != axis)
        fail<ValueError>("perm must name each axis of x ", x, " once, got ",
                         to_string(Dims(perm.begin(), perm.end())));
    }
    Shape in_order;
    for (const std::int64_t axis : perm) in_order.push_back(x[static_cast<std::size_t>(axis)]);
    return {part_of_shape(in_order, start, end)};
  };
}

}  // namespace

template <class T>
const OperatorTable<T>& fused_operators() {
  static const OperatorTable<T> table = [] {
    OperatorTable<T> all{{ops::linear.name, linear_operator<T>},
                         {ops::linear_relu.name, linear_relu_operator<T>},
                         {ops::add_layer_norm.name, add_layer_normalization<T>},
                         {ops::scaled_dot_product_attention.name, attention_operator<T>},
                         {without_nan, without_nan_operator<T>},
                         {ops::embedding.name, embedding_operator<T>},
                         {attention_shape, attention_shape_operator<T>},
                         {turned_shape, turned_shape_operator<T>}};
    if constexpr (std::is_same_v<T, float>) all.emplace(integer_linear, integer_linear_operator);
    return all;
  }();
  return table;
}

template const OperatorTable<float>& fused_operators();
template const OperatorTable<double>& fused_operators();

}  // namespace xgrad::onnx::detail
