// Operators of networks: products, softmax, norms, reductions.

#include <numeric>

#include "../../ops/einsum.hpp"
#include "../../ops/elementwise.hpp"
#include "../../ops/layer_norm.hpp"
#include "../../ops/matmul.hpp"
#include "../../ops/reductions.hpp"
#include "../../ops/shapes.hpp"
#include "../../ops/softmax.hpp"
#include "operators.hpp"

namespace xgrad::onnx::detail {
namespace {

using xgrad::detail::fail;

template <class T>
using Results = std::vector<Value<T>>;

template <class T>
Operator<T> matmul_operator(const NodeDescription&) {
  return [](const Arguments<T>& given) -> Results<T> { return {matmul(given.floats(0), given.floats(1))}; };
}

template <class T>
Operator<T> gemm_operator(const NodeDescription& node) {
  const GemmOptions options{.alpha = node.attributes.number("alpha", 1),
                            .beta = node.attributes.number("beta", 1),
                            .trans_a = node.attributes.integer("transA", 0) != 0,
                            .trans_b = node.attributes.integer("transB", 0) != 0};
  return [options](const Arguments<T>& given) -> Results<T> {
    return {gemm(given.floats(0), given.floats(1), given.floats_or_none(2), options)};
  };
}

template <class T>
Operator<T> einsum_operator(const NodeDescription& node) {
  const std::string equation = node.attributes.text("equation", "");
  return [equation](const Arguments<T>& given) -> Results<T> {
    std::vector<Variable<T>> operands;
    for (std::size_t i = 0; i < given.size(); ++i) operands.push_back(given.floats(i));
    return {einsum(equation, operands)};
  };
}

/// Before opset 13 over all axes from `axis` on, which is 1 unless it is given; since then over one.
template <class T, Variable<T> (*f)(const Variable<T>&, int)>
Operator<T> softmax_operator(const NodeDescription& node) {
  const bool is_over_one = node.opset >= 13;
  const std::int64_t axis = node.attributes.integer("axis", is_over_one ? -1 : 1);
  return [is_over_one, axis](const Arguments<T>& given) -> Results<T> {
    const Variable<T>& x = given.floats(0);
    if (is_over_one) return {f(x, static_cast<int>(axis))};
    const auto rank = static_cast<std::int64_t>(x.dimension());
    if (axis < -rank || axis > rank) fail<IndexError>("axis ", axis, " is out of range for x ", x.shape());
    const auto first = static_cast<std::size_t>(axis < 0 ? axis + rank : axis);
    const Shape rows(x.shape().begin(), x.shape().begin() + static_cast<std::ptrdiff_t>(first));
    const std::size_t count = element_count(rows), length = count == 0 ? 0 : x.size() / count;
    return {reshape(f(reshape(x, {count, length}), 1), Dims(x.shape()))};
  };
}

template <class T>
Operator<T> layer_normalization(const NodeDescription& node) {
  const std::int64_t axis = node.attributes.integer("axis", -1);
  const double epsilon = node.attributes.number("epsilon", 1e-5);
  node.attributes.ignore("stash_type");
  return [axis, epsilon, outputs = node.outputs](const Arguments<T>& given) -> Results<T> {
    const Variable<T>& x = given.floats(0);
    const Dims normalized = normalized_shape(axis, x.shape());
    Results<T> results{layer_norm(x, normalized, given.floats(1), given.floats_or_none(2), epsilon)};
    if (outputs == 1) return results;
    std::vector<std::ptrdiff_t> axes(normalized.size());
    std::iota(axes.begin(), axes.end(), static_cast<std::ptrdiff_t>(x.dimension() - normalized.size()));
    const Dims dims(axes.begin(), axes.end());
    results.push_back(mean(x, dims, true));
    results.push_back(rsqrt(var(x, dims, {.correction = 0, .keepdim = true}) + static_cast<T>(epsilon)));
    return results;
  };
}

/// The reductions, for floats of either width.
struct Sum {
  template <class T>
  static Variable<T> of(const Variable<T>& x, const Dims& axes, bool keepdims) {
    return sum(x, axes, keepdims);
  }
};
struct Mean {
  template <class T>
  static Variable<T> of(const Variable<T>& x, const Dims& axes, bool keepdims) {
    return mean(x, axes, keepdims);
  }
};
struct Largest {
  template <class T>
  static Variable<T> of(const Variable<T>& x, const Dims& axes, bool keepdims) {
    return amax(x, axes, keepdims);
  }
};
struct Least {
  template <class T>
  static Variable<T> of(const Variable<T>& x, const Dims& axes, bool keepdims) {
    return amin(x, axes, keepdims);
  }
};

/// Axes are an attribute up to the opset before `axes_as_input`, an input since; without any, all are reduced
/// unless noop_with_empty_axes is set. Integers are reduced as doubles.
template <class T, class Reduction, int axes_as_input>
Operator<T> reduction(const NodeDescription& node) {
  const bool keepdims = node.attributes.integer("keepdims", 1) != 0;
  const bool is_noop = node.attributes.integer("noop_with_empty_axes", 0) != 0;
  std::optional<std::vector<std::int64_t>> attribute;
  if (node.opset < axes_as_input) attribute = node.attributes.integers("axes");
  return [=](const Arguments<T>& given) -> Results<T> {
    std::vector<std::int64_t> axes;
    if (attribute) axes = *attribute;
    if (given.has(1)) axes = given.list(1);
    if (axes.empty()) {
      if (is_noop) return {given.value(0)};
      axes.resize(shape_of<T>(given.value(0)).size());
      std::iota(axes.begin(), axes.end(), 0);
    }
    const Dims dims(axes.begin(), axes.end());
    if (!std::holds_alternative<Ids>(given.value(0))) return {Reduction::of(given.floats(0), dims, keepdims)};
    const Variable<double> x(Array<double>(xt::cast<double>(given.integers(0))));
    return {Ids(xt::cast<std::int64_t>(Reduction::of(x, dims, keepdims).value()))};
  };
}

}  // namespace

template <class T>
void add_network_operators(OperatorTable<T>& table) {
  table["MatMul"] = matmul_operator<T>;
  table["Gemm"] = gemm_operator<T>;
  table["Einsum"] = einsum_operator<T>;
  table["Softmax"] = softmax_operator<T, softmax<T>>;
  table["LogSoftmax"] = softmax_operator<T, log_softmax<T>>;
  table["LayerNormalization"] = layer_normalization<T>;
  table["ReduceSum"] = reduction<T, Sum, 13>;
  table["ReduceMean"] = reduction<T, Mean, 18>;
  table["ReduceMax"] = reduction<T, Largest, 18>;
  table["ReduceMin"] = reduction<T, Least, 18>;
}

template void add_network_operators(OperatorTable<float>&);
template void add_network_operators(OperatorTable<double>&);

}  // namespace xgrad::onnx::detail
