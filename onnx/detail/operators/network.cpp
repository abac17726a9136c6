// Operators of networks: products, softmax, norms, reductions.

#include <limits>
#include <map>
#include <numeric>
#include <type_traits>

#include "../../../base/detail/text/json_text.hpp"
#include "../../../ops/norm/softmax.hpp"
#include "../../../ops/pointwise/elementwise.hpp"
#include "../../../ops/product/detail/einsum_equation.hpp"
#include "../../../ops/product/einsum.hpp"
#include "../../../ops/product/matmul.hpp"
#include "../../../ops/reduce/reductions.hpp"
#include "../../../ops/shape/shapes.hpp"
#include "../arrays.hpp"
#include "../values.hpp"
#include "operators.hpp"

namespace xgrad::onnx::detail {
namespace {

using xgrad::detail::fail;

/// Integers of two arrays multiplied as matrices; they wrap around.
template <class T>
Ids integer_product(const Arguments<T>& given, Ids a, Ids b) {
  given.check_product(a.shape(), b.shape());
  const Shape result = product_lengths(a.shape(), b.shape());
  if (a.dimension() == 0 || b.dimension() == 0) fail<ShapeError>("matrices must have an axis");
  if (a.dimension() == 1) a.reshape(Shape{1, a.size()});
  if (b.dimension() == 1) b.reshape(Shape{b.size(), 1});
  const auto matrix = [](const Ids& x) { return Shape(x.shape().end() - 2, x.shape().end()); };
  const auto batches = [](const Ids& x) { return Shape(x.shape().begin(), x.shape().end() - 2); };
  const std::size_t n = matrix(a)[0], k = matrix(a)[1], m = matrix(b)[1];
  if (matrix(b)[0] != k) fail<ShapeError>("inner axes must agree, got a ", a.shape(), " and b ", b.shape());
  const Shape both = xgrad::detail::broadcast_shape("batches", batches(a), batches(b));
  const auto with = [&](const Ids& x) {
    Shape shape = both;
    for (const std::size_t length : matrix(x)) shape.push_back(length);
    given.check_result(shape);
    return stretched(x, shape);
  };
  const Ids left = with(a), right = with(b);
  Ids y = Ids(result, std::int64_t{0});
  for (std::size_t row = 0; row < element_count(both) * n; ++row) {
    for (std::size_t i = 0; i < k; ++i) {
      const auto factor = static_cast<std::uint64_t>(left.data()[row * k + i]);
      const std::int64_t* const from = right.data() + (row / n * k + i) * m;
      std::int64_t* const to = y.data() + row * m;
      for (std::size_t j = 0; j < m; ++j)
        to[j] = static_cast<std::int64_t>(static_cast<std::uint64_t>(to[j]) +
                                          factor * static_cast<std::uint64_t>(from[j]));
    }
  }
  return y;
}

template <class T>
Operator<T> matmul_operator(const NodeDescription&) {
  return [](const Arguments<T>& given) -> Results<T> {
    if (std::holds_alternative<Ids>(given.value(0)))
      return {integer_product(given, given.integers(0), given.integers(1))};
    const Variable<T>&a = given.floats(0), &b = given.floats(1);
    given.check_product(a.shape(), b.shape());
    return {matmul(a, b)};
  };
}

template <class T>
Operator<T> gemm_operator(const NodeDescription& node) {
  const GemmOptions options{.alpha = node.attributes.number("alpha", 1),
                            .beta = node.attributes.number("beta", 1),
                            .trans_a = node.attributes.integer("transA", 0) != 0,
                            .trans_b = node.attributes.integer("transB", 0) != 0};
  return [options](const Arguments<T>& given) -> Results<T> {
    const Variable<T>&a = given.floats(0), &b = given.floats(1);
    if (a.dimension() == 2 && b.dimension() == 2)
      given.check_result({a.shape(options.trans_a ? 1 : 0), b.shape(options.trans_b ? 0 : 1)});
    return {gemm(a, b, given.floats_or_none(2), options)};
  };
}

template <class T>
using Activation = Variable<T> (*)(const Variable<T>&);

template <class T>
Activation<T> activation_of(const std::string& name) {
  if (name == "Relu") return relu<T>;
  if (name == "Tanh") return tanh<T>;
  if (name == "Sigmoid") return sigmoid<T>;
  fail<ValueError>("activation ", xgrad::detail::in_quotes(name), " is not supported");
}

/// A Gemm with an activation.
template <class T>
Operator<T> fused_gemm(const NodeDescription& node) {
  const Activation<T> f = activation_of<T>(node.attributes.text("activation", ""));
  return [product = gemm_operator<T>(node), f](const Arguments<T>& given) -> Results<T> {
    return {f(std::get<Variable<T>>(product(given).front()))};
  };
}

/// The lengths of the axes of "..." and of letters: no product on the way to the result has more. Of two
/// operands only the result is ever made, of more all letters may be left in a product of some.
template <class T>
Shape einsum_lengths(const std::string& equation, const std::vector<Variable<T>>& operands) {
  std::vector<Shape> shapes;
  for (const Variable<T>& x : operands) shapes.push_back(x.shape());
  const xgrad::detail::EinsumEquation parsed = xgrad::detail::parse_einsum(equation, shapes);
  std::map<int, std::size_t> lengths;
  for (std::size_t i = 0; i < shapes.size(); ++i) {
    for (std::size_t axis = 0; axis < shapes[i].size(); ++axis) {
      std::size_t& length = lengths.emplace(parsed.operands[i][axis], 1).first->second;
      length = std::max(length, shapes[i][axis]);
    }
  }
  Shape result;
  for (const auto& [label, length] : lengths) {
    if (operands.size() > 2 || xgrad::detail::contains(parsed.output, label)) result.push_back(length);
  }
  return result;
}

template <class T>
Operator<T> einsum_operator(const NodeDescription& node) {
  const std::string equation = node.attributes.text("equation", "");
  return [equation](const Arguments<T>& given) -> Results<T> {
    std::vector<Variable<T>> operands;
    for (std::size_t i = 0; i < given.size(); ++i) operands.push_back(given.floats(i));
    given.check_result(einsum_lengths(equation, operands));
    return {einsum(equation, operands)};
  };
}

/// Before opset 13 over all axes from `axis` on, which is 1 unless it is given; since then over one.
template <class T, Variable<T> (*f)(const Variable<T>&, Int)>
Operator<T> softmax_operator(const NodeDescription& node) {
  const bool is_over_one = node.opset >= 13;
  const std::int64_t axis = node.attributes.integer("axis", is_over_one ? -1 : 1);
  return [is_over_one, axis](const Arguments<T>& given) -> Results<T> {
    const Variable<T>& x = given.floats(0);
    if (is_over_one) return {f(x, static_cast<int>(axis_of(axis, x.dimension())))};
    const auto rank = static_cast<std::int64_t>(x.dimension());
    if (axis < -rank || axis > rank) fail<IndexError>("axis ", axis, " is out of range for x ", x.shape());
    const auto first = static_cast<std::size_t>(axis < 0 ? axis + rank : axis);
    const Shape rows(x.shape().begin(), x.shape().begin() + static_cast<std::ptrdiff_t>(first));
    const std::size_t count = element_count(rows), length = count == 0 ? 0 : x.size() / count;
    return {reshape(f(reshape(x, {count, length}), 1), Dims(x.shape()))};
  };
}

/// Whether elements are reduced where there are none.
bool is_of_none(const Shape& x, const Dims& axes) {
  return std::any_of(axes.begin(), axes.end(),
                     [&](std::ptrdiff_t axis) { return x[axis_of(axis, x.size())] == 0; });
}

/// The reductions: of floats of either width, and how an integer is added to those before, from `start` on.
struct Sum {
  template <class T>
  static Variable<T> of(const Variable<T>& x, const Dims& axes, bool keepdims) {
    return sum(x, axes, {.keepdim = keepdims});
  }
  static constexpr std::int64_t start = 0;
  static std::int64_t joined(std::int64_t a, std::int64_t b) {
    return static_cast<std::int64_t>(static_cast<std::uint64_t>(a) + static_cast<std::uint64_t>(b));
  }
};
struct SumOfSquares : Sum {
  template <class T>
  static Variable<T> of(const Variable<T>& x, const Dims& axes, bool keepdims) {
    return sum(square(x), axes, {.keepdim = keepdims});
  }
  static std::int64_t joined(std::int64_t a, std::int64_t b) {
    const auto square = static_cast<std::uint64_t>(b) * static_cast<std::uint64_t>(b);
    return Sum::joined(a, static_cast<std::int64_t>(square));
  }
};
struct SumOfSizes : Sum {
  template <class T>
  static Variable<T> of(const Variable<T>& x, const Dims& axes, bool keepdims) {
    return norm(x, 1, axes, {.keepdim = keepdims});
  }
  static std::int64_t joined(std::int64_t a, std::int64_t b) {
    const auto size = b < 0 ? -static_cast<std::uint64_t>(b) : static_cast<std::uint64_t>(b);
    return Sum::joined(a, static_cast<std::int64_t>(size));
  }
};
struct Product {
  template <class T>
  static Variable<T> of(const Variable<T>& x, const Dims& axes, bool keepdims) {
    Variable<T> y = x;
    for (const std::ptrdiff_t axis : axes) y = prod(y, axis, {.keepdim = true});
    if (keepdims) return y;
    Shape left;
    for (std::size_t axis = 0; axis < x.dimension(); ++axis)
      if (std::find(axes.begin(), axes.end(), static_cast<std::ptrdiff_t>(axis)) == axes.end())
        left.push_back(x.shape()[axis]);
    return reshape(y, Dims(left));
  }
  static constexpr std::int64_t start = 1;
  static std::int64_t joined(std::int64_t a, std::int64_t b) {
    return static_cast<std::int64_t>(static_cast<std::uint64_t>(a) * static_cast<std::uint64_t>(b));
  }
};
/// Reductions of floats only.
struct EuclideanNorm {
  template <class T>
  static Variable<T> of(const Variable<T>& x, const Dims& axes, bool keepdims) {
    return norm(x, 2, axes, {.keepdim = keepdims});
  }
};
struct LogOfSum {
  template <class T>
  static Variable<T> of(const Variable<T>& x, const Dims& axes, bool keepdims) {
    return log(sum(x, axes, {.keepdim = keepdims}));
  }
};
struct LogOfSumOfPowers {
  template <class T>
  static Variable<T> of(const Variable<T>& x, const Dims& axes, bool keepdims) {
    return logsumexp(x, axes, {.keepdim = keepdims});
  }
};
struct Mean : Sum {
  template <class T>
  static Variable<T> of(const Variable<T>& x, const Dims& axes, bool keepdims) {
    return mean(x, axes, {.keepdim = keepdims});
  }
};
struct Largest {
  template <class T>
  static Variable<T> of(const Variable<T>& x, const Dims& axes, bool keepdims) {
    if (is_of_none(x.shape(), axes))
      return sum(x, axes, {.keepdim = keepdims}) - std::numeric_limits<T>::infinity();
    return amax(x, axes, {.keepdim = keepdims});
  }
  static constexpr std::int64_t start = std::numeric_limits<std::int64_t>::min();
  static std::int64_t joined(std::int64_t a, std::int64_t b) { return std::max(a, b); }
};
struct Least {
  template <class T>
  static Variable<T> of(const Variable<T>& x, const Dims& axes, bool keepdims) {
    if (is_of_none(x.shape(), axes))
      return sum(x, axes, {.keepdim = keepdims}) + std::numeric_limits<T>::infinity();
    return amin(x, axes, {.keepdim = keepdims});
  }
  static constexpr std::int64_t start = std::numeric_limits<std::int64_t>::max();
  static std::int64_t joined(std::int64_t a, std::int64_t b) { return std::min(a, b); }
};

template <class Reduction>
concept IntegerReduction = requires {
  Reduction::start;
};

/// Whether a mean, a maximum or a minimum of no elements is asked for.
template <class Reduction>
constexpr bool needs_elements =
    std::is_same_v<Reduction, Mean> || std::is_same_v<Reduction, Largest> || std::is_same_v<Reduction, Least>;

/// The same of integers: sums and products wrap around, and means lose their fractions.
template <IntegerReduction Reduction>
Ids reduced_integers(const Ids& x, const std::vector<std::int64_t>& list, bool keepdims) {
  const std::vector<std::size_t> axes = axes_of(list, x.dimension());
  Ids y = reduced(x, axes, Reduction::start, Reduction::joined);
  if (x.size() == 0 && y.size() > 0 && needs_elements<Reduction>)
    fail<ShapeError>("there are no elements to reduce in x ", x.shape());
  if constexpr (std::is_same_v<Reduction, Mean>) {
    const auto count = static_cast<std::int64_t>(y.size() == 0 ? 1 : x.size() / y.size());
    std::transform(y.begin(), y.end(), y.begin(), [count](std::int64_t all) { return all / count; });
  }
  if (keepdims) return y;
  Shape left;
  for (std::size_t axis = 0; axis < x.dimension(); ++axis)
    if (!std::ranges::binary_search(axes, axis)) left.push_back(x.shape()[axis]);
  y.reshape(left);
  return y;
}

/// Input 0, reduced along axes.
template <class T, class Reduction>
Value<T> reduced_along(const Arguments<T>& given, std::vector<std::int64_t> axes, bool keepdims) {
  if constexpr (IntegerReduction<Reduction>) {
    if (std::holds_alternative<Ids>(given.value(0)))
      return reduced_integers<Reduction>(given.integers(0), axes, keepdims);
  }
  if constexpr (std::is_same_v<Reduction, Largest> || std::is_same_v<Reduction, Least>) {
    if (std::holds_alternative<Mask>(given.value(0))) {
      const Ids numbers = mapped<std::int64_t>(given.conditions(0), [](bool is) { return is ? 1 : 0; });
      return mapped<bool>(reduced_integers<Reduction>(numbers, axes, keepdims),
                          [](std::int64_t x) { return x == 1; });
    }
  }
  const std::size_t rank = shape_of<T>(given.value(0)).size();
  for (std::int64_t& axis : axes) axis = static_cast<std::int64_t>(axis_of(axis, rank));
  return Reduction::of(given.floats(0), Dims(axes.begin(), axes.end()), keepdims);
}

/// Axes are an attribute up to the opset before `axes_as_input`, an input since; without any, all are
/// reduced, or with noop_with_empty_axes each element by itself. The largest and the least condition say
/// whether any and all are true.
template <class T, class Reduction, int axes_as_input>
Operator<T> reduction(const NodeDescription& node) {
  const bool keepdims = node.attributes.integer("keepdims", 1) != 0;
  const bool has_input = node.opset >= axes_as_input;
  const bool is_noop = has_input && node.attributes.integer("noop_with_empty_axes", 0) != 0;
  std::optional<std::vector<std::int64_t>> attribute;
  if (!has_input) attribute = node.attributes.integers("axes");
  return [=](const Arguments<T>& given) -> Results<T> {
    std::vector<std::int64_t> axes;
    if (attribute) axes = *attribute;
    if (has_input && given.has(1)) axes = given.list(1);
    Shape shape = shape_of<T>(given.value(0));
    if (!axes.empty() || (!is_noop && !shape.empty())) {
      if (axes.empty()) {
        axes.resize(shape.size());
        std::iota(axes.begin(), axes.end(), 0);
      }
      return {reduced_along<T, Reduction>(given, std::move(axes), keepdims)};
    }
    // along an axis of its own, a reduction has its function of one element
    axes = {static_cast<std::int64_t>(shape.size())};
    shape.push_back(1);
    const Value<T> apart = reshaped<T>(given.value(0), shape);
    const Value<T>* const only[] = {&apart};
    return {reduced_along<T, Reduction>(given.with(only), std::move(axes), false)};
  };
}

}  // namespace

template <class T>
void add_network_operators(OperatorTable<T>& table) {
  table["MatMul"] = matmul_operator<T>;
  table["Gemm"] = gemm_operator<T>;
  table["com.microsoft.FusedGemm"] = fused_gemm<T>;
  table["Einsum"] = einsum_operator<T>;
  table["Softmax"] = softmax_operator<T, softmax<T>>;
  table["LogSoftmax"] = softmax_operator<T, log_softmax<T>>;
  table["ReduceSum"] = reduction<T, Sum, 13>;
  table["ReduceProd"] = reduction<T, Product, 18>;
  table["ReduceSumSquare"] = reduction<T, SumOfSquares, 18>;
  table["ReduceL1"] = reduction<T, SumOfSizes, 18>;
  table["ReduceL2"] = reduction<T, EuclideanNorm, 18>;
  table["ReduceLogSum"] = reduction<T, LogOfSum, 18>;
  table["ReduceLogSumExp"] = reduction<T, LogOfSumOfPowers, 18>;
  table["ReduceMean"] = reduction<T, Mean, 18>;
  table["ReduceMax"] = reduction<T, Largest, 18>;
  table["ReduceMin"] = reduction<T, Least, 18>;
}

template void add_network_operators(OperatorTable<float>&);
template void add_network_operators(OperatorTable<double>&);

}  // namespace xgrad::onnx::detail
