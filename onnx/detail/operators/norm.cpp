// Operators that normalize.

#include <numeric>

#include "../../../ops/index/indexing.hpp"
#include "../../../ops/index/where.hpp"
#include "../../../ops/norm/channel_norms.hpp"
#include "../../../ops/norm/layer_norm.hpp"
#include "../../../ops/norm/rms_norm.hpp"
#include "../../../ops/pointwise/arithmetic.hpp"
#include "../../../ops/pointwise/elementwise.hpp"
#include "../../../ops/reduce/reductions.hpp"
#include "../../../ops/shape/shapes.hpp"
#include "../arrays.hpp"
#include "operators.hpp"

namespace xgrad::onnx::detail {
namespace {

using xgrad::detail::fail;

/// x scaled, and moved unless bias is undefined, by what broadcasts to its shape.
template <class T>
Variable<T> scaled(const Variable<T>& x, const Variable<T>& scale, const Variable<T>& bias) {
  const auto check = [&](const char* what, const Variable<T>& other) {
    if (!same_shape(broadcast_lengths(x.shape(), other.shape()), x.shape()))
      fail<ShapeError>(what, " must broadcast to x ", x.shape(), ", got ", other.shape());
  };
  check("scale", scale);
  if (!bias.defined()) return x * scale;
  check("bias", bias);
  return x * scale + bias;
}

template <class T>
bool has_shape(const Variable<T>& x, const Dims& shape) {
  return std::equal(x.shape().begin(), x.shape().end(), shape.begin(), shape.end(),
                    [](std::size_t a, std::ptrdiff_t b) { return static_cast<std::ptrdiff_t>(a) == b; });
}

template <class T>
Operator<T> layer_normalization(const NodeDescription& node) {
  const std::int64_t axis = node.attributes.integer("axis", -1);
  const double epsilon = node.attributes.number("epsilon", 1e-5);
  check_precision(node.attributes, "stash_type");
  return [axis, epsilon, outputs = node.outputs](const Arguments<T>& given) -> Results<T> {
    const Variable<T>&x = given.floats(0), &scale = given.floats(1);
    const Variable<T> bias = given.floats_or_none(2);
    const Dims normalized = normalized_shape(axis, x.shape());
    const bool is_regular = has_shape(scale, normalized) && (!bias.defined() || has_shape(bias, normalized));
    Results<T> results{is_regular ? layer_norm(x, normalized, scale, bias, epsilon)
                                  : scaled(layer_norm(x, normalized, {}, {}, epsilon), scale, bias)};
    if (outputs == 1) return results;
    std::vector<std::ptrdiff_t> axes(normalized.size());
    std::iota(axes.begin(), axes.end(), static_cast<std::ptrdiff_t>(x.dimension() - normalized.size()));
    const Dims dims(axes.begin(), axes.end());
    results.push_back(mean(x, dims, {.keepdim = true}));
    results.push_back(rsqrt(var(x, dims, {.correction = 0, .keepdim = true}) + static_cast<T>(epsilon)));
    return results;
  };
}

template <class T>
Operator<T> rms_normalization(const NodeDescription& node) {
  const std::int64_t axis = node.attributes.integer("axis", -1);
  const double epsilon = node.attributes.number("epsilon", 1e-5);
  check_precision(node.attributes, "stash_type");
  return [axis, epsilon](const Arguments<T>& given) -> Results<T> {
    const Variable<T>&x = given.floats(0), &scale = given.floats(1);
    const Dims normalized = normalized_shape(axis, x.shape());
    if (has_shape(scale, normalized)) return {rms_norm(x, normalized, scale, {.eps = epsilon})};
    return {scaled(rms_norm(x, normalized, {}, {.eps = epsilon}), scale, Variable<T>())};
  };
}

/// All axes but that of the channels.
Dims all_but_channels(const Shape& x) {
  std::vector<std::ptrdiff_t> axes{0};
  for (std::size_t axis = 2; axis < x.size(); ++axis) axes.push_back(static_cast<std::ptrdiff_t>(axis));
  return {axes.begin(), axes.end()};
}

/// In training by the batch's own statistics, which are joined with the given ones.
template <class T>
Operator<T> batch_normalization(const NodeDescription& node) {
  const double epsilon = node.attributes.number("epsilon", 1e-5);
  const T momentum = static_cast<T>(node.attributes.number("momentum", 0.9));
  const bool trains = node.attributes.integer("training_mode", 0) != 0;
  if (node.attributes.integer("spatial", 1) != 1)
    fail<ValueError>("statistics of each place are not supported (spatial)");
  if (node.outputs > 3 || (node.outputs > 1 && !trains))
    fail<ValueError>("the statistics of a batch are not supported without training_mode");
  return [=](const Arguments<T>& given) -> Results<T> {
    const Variable<T>&x = given.floats(0), &scale = given.floats(1), &bias = given.floats(2),
          &average = given.floats(3), &variance = given.floats(4);
    if (!trains) return {batch_norm(x, average, variance, scale, bias, {.eps = epsilon})};
    const Dims axes = all_but_channels(x.shape());
    const auto joined = [&](const Variable<T>& before, const Variable<T>& now) {
      return before * momentum + now * (1 - momentum);
    };
    return {batch_norm(x, {}, {}, scale, bias, {.training = true, .eps = epsilon}),
            joined(average, mean(x, axes)), joined(variance, var(x, axes, {.correction = 0}))};
  };
}

template <class T>
Operator<T> instance_normalization(const NodeDescription& node) {
  const double epsilon = node.attributes.number("epsilon", 1e-5);
  return [epsilon](const Arguments<T>& given) -> Results<T> {
    return {instance_norm(given.floats(0), {}, {}, given.floats(1), given.floats(2), {.eps = epsilon})};
  };
}

/// The scale and the bias are those of groups before opset 21, of channels since.
template <class T>
Operator<T> group_normalization(const NodeDescription& node) {
  const double epsilon = node.attributes.number("epsilon", 1e-5);
  const std::int64_t groups = node.attributes.integer("num_groups", 0);
  if (groups < 1) fail<ValueError>("num_groups must be at least 1, got ", groups);
  check_precision(node.attributes, "stash_type");
  return [epsilon, groups, of_groups = node.opset < 21](const Arguments<T>& given) -> Results<T> {
    const Variable<T>& x = given.floats(0);
    const auto of_channels = [&](const Variable<T>& one) {
      const std::size_t channels = x.dimension() < 2 ? 0 : x.shape(1);
      if (of_groups && one.shape() != Shape{static_cast<std::size_t>(groups)})
        fail<ShapeError>("scale and bias must be (", groups, "), got ", one.shape());
      return of_groups ? repeat_interleave(one, channels / static_cast<std::size_t>(groups), 0) : one;
    };
    return {group_norm(x, groups, of_channels(given.floats(1)), of_channels(given.floats(2)), epsilon)};
  };
}

/// x / norm, and 0 where the norm is 0.
template <class T>
Operator<T> lp_normalization(const NodeDescription& node) {
  const std::int64_t axis = node.attributes.integer("axis", -1), p = node.attributes.integer("p", 2);
  if (p != 1 && p != 2) fail<ValueError>("p must be 1 or 2, got ", p);
  return [axis, p](const Arguments<T>& given) -> Results<T> {
    const Variable<T>& x = given.floats(0);
    const Variable<T> size =
        norm(x, static_cast<T>(p), Dims(axis_of(axis, x.dimension())), {.keepdim = true});
    return {x / where(mapped<bool>(size.value(), [](T one) { return one == 0; }), Variable<T>(T{1}), size)};
  };
}

/// (x - mean) / (standard deviation + 1e-9).
template <class T>
Operator<T> mean_variance_normalization(const NodeDescription& node) {
  const std::vector<std::int64_t> axes =
      node.attributes.integers("axes").value_or(std::vector<std::int64_t>{0, 2, 3});
  return [axes](const Arguments<T>& given) -> Results<T> {
    const Variable<T>& x = given.floats(0);
    const Dims dims(axes.begin(), axes.end());
    const Variable<T> centred = x - mean(x, dims, {.keepdim = true});
    return {centred / (std(x, dims, {.correction = 0, .keepdim = true}) + static_cast<T>(1e-9))};
  };
}

/// Of an input, a skip, a scale, a bias of the norm and one of the sum; the fourth output is the sum.
template <class T, bool has_mean>
Operator<T> skip_normalization(const NodeDescription& node) {
  const double epsilon = node.attributes.number("epsilon", has_mean ? 1e-12 : 1e-5);
  if (node.makes(1) || node.makes(2)) fail<ValueError>("the statistics of rows are not supported as outputs");
  return [epsilon, outputs = node.outputs](const Arguments<T>& given) -> Results<T> {
    const Variable<T>&x = given.floats(0), &skip = given.floats(1), &scale = given.floats(2);
    const std::size_t of_sum = has_mean ? 4 : 3;
    given.check_broadcast({0, 1});
    if (given.has(of_sum)) given.check_broadcast({0, 1, of_sum});
    const Variable<T> residual = given.has(of_sum) ? skip + given.floats(of_sum) : skip;
    const Dims normalized = normalized_shape(-1, x.shape());
    if (has_mean && outputs == 1 && same_shape(x.shape(), residual.shape()))
      return {add_layer_norm(x, residual, normalized, scale, given.floats_or_none(3), epsilon)};
    const Variable<T> sum = x + residual, none(T{0});
    return {has_mean ? layer_norm(sum, normalized, scale, given.floats_or_none(3), epsilon)
                     : rms_norm(sum, normalized, scale, {.eps = epsilon}),
            none, none, sum};
  };
}

}  // namespace

template <class T>
void add_norm_operators(OperatorTable<T>& table) {
  table["LayerNormalization"] = layer_normalization<T>;
  table["RMSNormalization"] = rms_normalization<T>;
  table["SimplifiedLayerNormalization"] = rms_normalization<T>;
  table["BatchNormalization"] = batch_normalization<T>;
  table["InstanceNormalization"] = instance_normalization<T>;
  table["GroupNormalization"] = group_normalization<T>;
  table["LpNormalization"] = lp_normalization<T>;
  table["MeanVarianceNormalization"] = mean_variance_normalization<T>;
  table["com.microsoft.SkipLayerNormalization"] = skip_normalization<T, true>;
  table["com.microsoft.SkipSimplifiedLayerNormalization"] = skip_normalization<T, false>;
}

template void add_norm_operators(OperatorTable<float>&);
template void add_norm_operators(OperatorTable<double>&);

}  // namespace xgrad::onnx::detail
