#include "exporter.hpp"

#include <algorithm>
#include <cmath>
#include <functional>
#include <limits>
#include <numeric>
#include <tuple>

#include "../../files/tensor_view.hpp"
#include "../../graph/error.hpp"

namespace xgrad::onnx::detail {
namespace {

using xgrad::detail::Access, xgrad::detail::in_quotes;

template <class T>
const void* address(const Variable<T>& v) {
  return Access<T>::value(v).get();
}

template <class A>
bool same_elements(const A& a, const A& b) {
  return same_shape(a.shape(), b.shape()) && std::equal(a.begin(), a.end(), b.begin());
}

/// Ops that are one operator of ONNX.
const std::map<std::string, const char*>& unary_operators() {
  static const std::map<std::string, const char*> names = {
      {"exp", "Exp"},         {"log", "Log"},
      {"sqrt", "Sqrt"},       {"tanh", "Tanh"},
      {"sigmoid", "Sigmoid"}, {"erf", "Erf"},
      {"relu", "Relu"},       {"neg", "Neg"},
      {"abs", "Abs"},         {"reciprocal", "Reciprocal"},
      {"floor", "Floor"},     {"ceil", "Ceil"},
      {"sin", "Sin"},         {"cos", "Cos"},
      {"sign", "Sign"},       {"round", "Round"},
      {"alias", "Identity"}};
  return names;
}

const std::map<std::string, const char*>& binary_operators() {
  static const std::map<std::string, const char*> names = {
      {"add", "Add"}, {"sub", "Sub"},     {"mul", "Mul"},     {"div", "Div"},
      {"pow", "Pow"}, {"maximum", "Max"}, {"minimum", "Min"}, {"masked_mul", "Mul"}};
  return names;
}

std::vector<std::int64_t> counting(std::size_t rank) {
  std::vector<std::int64_t> axes(rank);
  std::iota(axes.begin(), axes.end(), 0);
  return axes;
}

template <class T>
constexpr std::int64_t float_type = std::is_same_v<T, float> ? 1 : 11;

}  // namespace

template <class T>
Exporter<T>::Exporter(const Module<T>& model, const AxisLengths& lengths, const InputAxes& axes,
                      const TracedCall<T>& first, const TracedCall<T>& second)
    : lengths_(lengths), axes_(axes), first_(first), second_(second), axis_lengths_(lengths.size()) {
  add_inputs();
  add_parameters(model);
}

template <class T>
GraphWriter Exporter<T>::write() {
  if (first_.ops.size() != second_.ops.size()) {
    xgrad::detail::fail<ValueError>(
        "onnx::save: the model must compute the same ops for all lengths, it called ", first_.ops.size(),
        " and ", second_.ops.size());
  }
  for (std::size_t i = 0; i < first_.ops.size(); ++i) add_op({first_.ops[i], second_.ops[i]});
  add_outputs();
  if (!problems_.empty()) {
    std::string text = "onnx::save: what cannot be exported: ";
    for (std::size_t i = 0; i < problems_.size(); ++i) text += (i == 0 ? "" : "; ") + problems_[i];
    throw ValueError(text);
  }
  return std::move(graph_);
}

template <class T>
void Exporter<T>::add_inputs() {
  for (const auto& [name, numbers] : axes_) {
    const Value<T>& value = first_.given.at(name);
    std::vector<GraphWriter::Axis> axes;
    for (std::size_t i = 0; i < numbers.size(); ++i) {
      if (numbers[i] == no_axis) {
        axes.push_back({static_cast<std::int64_t>(shape_of<T>(value)[i]), ""});
      } else {
        axes.push_back({-1, lengths_.name(numbers[i])});
      }
    }
    graph_.new_name(name);
    const Variable<T>* const floats = std::get_if<Variable<T>>(&value);
    graph_.input(name, floats != nullptr ? float_type<T> : 7, axes);
    if (floats != nullptr) names_[address(*floats)] = name;
  }
}

template <class T>
void Exporter<T>::add_parameters(const Module<T>& model) {
  for (const auto& [name, parameter] : model.named_parameters()) {
    graph_.new_name(name);
    names_[address(parameter)] = name;
  }
  // all have their names before the first is written, as no other value may take one
  for (const auto& [name, parameter] : model.named_parameters())
    graph_.initializer(name, parameter.shape(),
                       std::span<const T>(parameter.value().data(), parameter.size()));
}

template <class T>
void Exporter<T>::add_op(const Pair& op) {
  if (names_.contains(address(op.first.result))) return;  // an input as it is
  std::string scope = op.first.module;
  std::ranges::replace(scope, '.', '/');
  graph_.begin_scope(scope.empty() ? "" : scope + "/");
  const std::string where = op.first.module.empty() ? "" : " in " + op.first.module;
  try {
    if (op.first.op != op.second.op) refuse("other ops for other lengths: " + op.second.op);
    const auto found = emitters().find(op.first.op);
    if (found == emitters().end()) refuse("there is no operator for it");
    (this->*found->second)(op);
  } catch (const Problem& problem) {
    const std::string text = "'" + op.first.op + "'" + where + ", " + problem.text;
    if (std::ranges::find(problems_, text) == problems_.end()) problems_.push_back(text);
    names_[address(op.first.result)] = "missing";
  }
}

template <class T>
void Exporter<T>::add_outputs() {
  graph_.begin_scope("");
  for (const auto& [name, value] : first_.results) {
    const Variable<T>* const floats = std::get_if<Variable<T>>(&value);
    const auto made = floats != nullptr ? names_.find(address(*floats)) : names_.end();
    if (made == names_.end()) {
      problems_.push_back("the output " + in_quotes(name) + ", which no op of the model made");
      continue;
    }
    std::vector<GraphWriter::Axis> axes;
    const Shape& second = shape_of<T>(second_.results.at(name));
    for (std::size_t i = 0; i < second.size(); ++i) {
      const auto length = lengths_.explain(floats->shape()[i], second[i]);
      const bool is_named = length && length->factor == 1 && length->axes.size() == 1;
      axes.push_back({length && length->is_fixed() ? static_cast<std::int64_t>(length->factor) : -1,
                      is_named ? lengths_.name(length->axes[0]) : ""});
    }
    graph_.new_name(name);
    graph_.node("Identity", {made->second}, {}, name);
    graph_.output(name, float_type<T>, axes);
  }
}

// ---- Values ----

template <class T>
std::string Exporter<T>::name_of(const Pair& op, std::size_t input) {
  const Variable<T>& first = op.first.inputs[input];
  const auto found = names_.find(address(first));
  if (found != names_.end()) return found->second;
  const std::string name = constant(first, op.second.inputs[input]);
  names_[address(first)] = name;
  return name;
}

template <class T>
std::string Exporter<T>::constant(const Variable<T>& first, const Variable<T>& second) {
  if (!same_elements(first.value(), second.value())) {
    const auto is_first_one = [&](T element) {
      return first.size() > 0 && element == first.value().data()[0];
    };
    if (std::ranges::all_of(first.value(), is_first_one) &&
        std::ranges::all_of(second.value(), is_first_one)) {
      const SymbolicShape shape = explained(first.shape(), second.shape());
      return graph_.node("Expand", {number(static_cast<double>(first.value().data()[0])), list(shape)});
    }
    return shares(first, second);
  }
  if (first.dimension() == 0) return number(static_cast<double>(first.item()));
  const std::string name = graph_.new_name("constant");
  graph_.initializer(name, first.shape(), std::span<const T>(first.value().data(), first.size()));
  return name;
}

template <class T>
std::string Exporter<T>::number(double value) {
  std::string& name = numbers_[value];
  if (name.empty()) {
    name = graph_.new_name("number");
    const T element = static_cast<T>(value);
    graph_.initializer(name, Shape{}, std::span<const T>(&element, 1));
  }
  return name;
}

template <class T>
std::string Exporter<T>::not_equal(const std::string& input, std::int64_t number) {
  return graph_.node("Not", {graph_.node("Equal", {input, graph_.integer(number)})});
}

template <class T>
std::string Exporter<T>::condition(const Mask& first, const Mask& second) {
  if (same_elements(first, second)) {
    const std::string name = graph_.new_name("condition");
    graph_.initializer(name, first.shape(), std::span<const bool>(first.data(), first.size()));
    return name;
  }
  for (const auto& [name, value] : first_.given) {
    const Ids* const of_first = std::get_if<Ids>(&value);
    if (of_first == nullptr || of_first->size() != first.size()) continue;
    const Ids& of_second = std::get<Ids>(second_.given.at(name));
    if (of_second.size() != second.size()) continue;
    const auto hidden = std::find(first.begin(), first.end(), false);
    if (hidden == first.end()) continue;
    const std::int64_t number = of_first->data()[hidden - first.begin()];
    const auto fits = [number](const Mask& mask, const Ids& of) {
      return std::equal(mask.begin(), mask.end(), of.begin(),
                        [number](bool shown, std::int64_t id) { return shown == (id != number); });
    };
    if (!fits(first, *of_first) || !fits(second, of_second)) continue;
    return reshaped(not_equal(name, number), of_first->shape(), of_second.shape(), first.shape(),
                    second.shape());
  }
  refuse("a condition " + to_string(first.shape()) + " that is not where an input is one number");
}

template <class T>
std::string Exporter<T>::shares(const Variable<T>& first, const Variable<T>& second) {
  const auto mask_of = [](const Variable<T>& x) {
    Mask mask = Mask::from_shape(x.shape());
    std::transform(x.value().begin(), x.value().end(), mask.begin(), [](T share) { return share != T{0}; });
    return mask;
  };
  const auto are_shares = [](const Variable<T>& x, const Mask& mask) {
    const std::size_t length = x.dimension() == 0 ? 1 : x.shape().back();
    for (std::size_t begin = 0; begin < x.size(); begin += length) {
      const auto count = std::count(mask.data() + begin, mask.data() + begin + length, true);
      for (std::size_t i = begin; i < begin + length; ++i)
        if (mask.data()[i] && x.value().data()[i] != T{1} / static_cast<T>(count)) return false;
    }
    return true;
  };
  const std::string text =
      "a constant " + to_string(first.shape()) + " that is not the same for other lengths";
  const Mask of_first = mask_of(first), of_second = mask_of(second);
  if (!are_shares(first, of_first) || !are_shares(second, of_second)) refuse(text);
  const std::string counts =
      graph_.node("Cast", {condition(of_first, of_second)}, AttributeWriter().integer("to", float_type<T>));
  const std::string sum = graph_.node("ReduceSum", {counts, graph_.integers({-1})});
  return graph_.node("Div", {counts, graph_.node("Max", {sum, number(1)})});
}

template <class T>
std::string Exporter<T>::ids(const Ids& first, const Ids& second) {
  if (same_elements(first, second)) {
    const std::string name = graph_.new_name("ids");
    graph_.initializer(name, first.shape(), std::span<const std::int64_t>(first.data(), first.size()));
    return name;
  }
  for (const auto& [name, value] : first_.given) {
    const Ids* const of_first = std::get_if<Ids>(&value);
    if (of_first == nullptr || of_first->size() != first.size()) continue;
    const Ids& of_second = std::get<Ids>(second_.given.at(name));
    if (of_second.size() != second.size()) continue;
    const auto in_shape = [&](const std::string& made) {
      return reshaped(made, of_first->shape(), of_second.shape(), first.shape(), second.shape());
    };
    const auto are = [&](const auto& made) {
      const Ids one = made(*of_first), other = made(of_second);
      return std::equal(first.begin(), first.end(), one.begin()) &&
             std::equal(second.begin(), second.end(), other.begin());
    };
    if (are([](const Ids& given) { return given; })) return in_shape(name);
    if (are([](const Ids& given) { return Ids(given.shape(), 0); }))
      return in_shape(graph_.node("Mul", {name, graph_.integer(0)}));
    // positions of the tokens of each row that are not padding, from padding + 1 on
    const std::int64_t padding = *std::min_element(first.begin(), first.end());
    for (const std::int64_t pad : {padding, padding - 1}) {
      const auto positions = [pad](const Ids& given) {
        Ids made = given;
        const std::size_t length = given.shape().back();
        for (std::size_t i = 0; i < given.size(); ++i) {
          std::int64_t last = pad;
          for (std::size_t j = i / length * length; j <= i; ++j) last += given.data()[j] != pad ? 1 : 0;
          made.data()[i] = given.data()[i] == pad ? pad : last;
        }
        return made;
      };
      if (!are(positions)) continue;
      const std::string counts =
          graph_.node("Cast", {not_equal(name, pad)}, AttributeWriter().integer("to", 7));
      const auto axis = static_cast<std::int64_t>(of_first->dimension()) - 1;
      const std::string sums = graph_.node("CumSum", {counts, graph_.integer(axis)});
      return in_shape(graph_.node("Add", {graph_.node("Mul", {sums, counts}), graph_.integer(pad)}));
    }
  }
  const auto counts_up = [](const Ids& all) {
    const std::size_t length = all.dimension() == 0 ? 1 : all.shape().back();
    for (std::size_t i = 0; i < all.size(); ++i)
      if (all.data()[i] != all.data()[0] + static_cast<std::int64_t>(i % length)) return false;
    return true;
  };
  if (counts_up(first) && counts_up(second) && first.data()[0] == second.data()[0]) {
    const SymbolicShape shape = explained(first.shape(), second.shape());
    const std::string length = graph_.node("Squeeze", {list({shape.back()}), graph_.integers({0})});
    const std::string range = graph_.node("Range", {graph_.integer(0), length, graph_.integer(1)});
    const std::string places = graph_.node("Add", {range, graph_.integer(first.data()[0])});
    return graph_.node("Expand", {places, list(shape)});
  }
  refuse("ids " + to_string(first.shape()) + " that are not made of an input in a known way");
}

// ---- Shapes ----

template <class T>
typename Exporter<T>::SymbolicShape Exporter<T>::explained(const Shape& first, const Shape& second) const {
  SymbolicShape shape;
  for (std::size_t axis = 0; axis < first.size(); ++axis) {
    const auto length = axis < second.size() ? lengths_.explain(first[axis], second[axis]) : std::nullopt;
    if (!length) refuse("a shape " + to_string(first) + " that became " + to_string(second));
    shape.push_back(*length);
  }
  return shape;
}

/// As a list of one.
template <class T>
std::string Exporter<T>::axis_length(std::size_t axis) {
  std::string& name = axis_lengths_[axis];
  if (!name.empty()) return name;
  for (const auto& [input, axes] : axes_) {
    const auto found = std::ranges::find(axes, axis);
    if (found == axes.end()) continue;
    const auto place = found - axes.begin();
    name = graph_.node("Shape", {input}, AttributeWriter().integer("start", place).integer("end", place + 1));
    break;
  }
  return name;
}

template <class T>
std::string Exporter<T>::list(const SymbolicShape& lengths) {
  const bool is_fixed = std::ranges::all_of(lengths, &SymbolicLength::is_fixed);
  std::vector<std::int64_t> fixed;
  Names parts;
  for (const auto& [factor, axes] : lengths) {
    fixed.push_back(static_cast<std::int64_t>(factor));
    if (is_fixed) continue;
    std::string part = axes.empty() ? graph_.integers({fixed.back()}) : axis_length(axes[0]);
    for (std::size_t i = 1; i < axes.size(); ++i) part = graph_.node("Mul", {part, axis_length(axes[i])});
    if (!axes.empty() && factor != 1) part = graph_.node("Mul", {part, graph_.integers({fixed.back()})});
    parts.push_back(part);
  }
  if (is_fixed) return graph_.integers(fixed);
  return parts.size() == 1 ? parts[0] : graph_.node("Concat", parts, AttributeWriter().integer("axis", 0));
}

template <class T>
std::string Exporter<T>::reshaped(const std::string& x, const Shape& from_first, const Shape& from_second,
                                  const Shape& to_first, const Shape& to_second) {
  if (same_shape(from_first, to_first)) return x;
  const SymbolicShape to = explained(to_first, to_second);
  std::vector<std::int64_t> target;
  std::size_t open = 0;
  for (std::size_t axis = 0; axis < to.size(); ++axis) {
    const bool is_copied = axis < from_first.size() && from_first[axis] == to_first[axis] &&
                           from_second[axis] == to_second[axis];
    open += to[axis].is_fixed() || is_copied ? 0 : 1;
    target.push_back(to[axis].is_fixed() ? static_cast<std::int64_t>(to[axis].factor) : is_copied ? 0 : -1);
  }
  return graph_.node("Reshape", {x, open <= 1 ? graph_.integers(target) : list(to)});
}

template <class T>
std::string Exporter<T>::transposed(const std::string& x, std::vector<std::int64_t> perm) {
  return graph_.node("Transpose", {x}, AttributeWriter().integers("perm", perm));
}

template <class T>
std::string Exporter<T>::last_axes_swapped(const std::string& x, std::size_t rank) {
  std::vector<std::int64_t> perm = counting(rank);
  std::swap(perm[rank - 1], perm[rank - 2]);
  return transposed(x, perm);
}

template <class T>
void Exporter<T>::result(const Pair& op, const std::string& name) {
  names_[address(op.first.result)] = name;
}

// ---- Ops ----

template <class T>
void Exporter<T>::emit_unary(const Pair& op) {
  result(op, graph_.node(unary_operators().at(op.first.op), {name_of(op, 0)}));
}

template <class T>
void Exporter<T>::emit_binary(const Pair& op) {
  const char* const attribute = op.first.op == "pow" ? "exponent" : "other";
  const std::string second = op.has(1) ? name_of(op, 1) : number(op.template attribute<double>(attribute));
  result(op, graph_.node(binary_operators().at(op.first.op), {name_of(op, 0), second}));
}

template <class T>
void Exporter<T>::emit_composed_unary(const Pair& op) {
  const std::string x = name_of(op, 0);
  if (op.first.op == "rsqrt") return result(op, graph_.node("Reciprocal", {graph_.node("Sqrt", {x})}));
  if (op.first.op == "square") return result(op, graph_.node("Mul", {x, x}));
  if (op.first.op == "cube") return result(op, graph_.node("Mul", {graph_.node("Mul", {x, x}), x}));
  result(op, graph_.node("Mul", {x, graph_.node("Sigmoid", {x})}));  // silu
}

/// x / 2 (1 + erf(x / sqrt 2)), or x / 2 (1 + tanh(sqrt(2 / pi) (x + 0.044715 x^3))), which runtimes fuse.
template <class T>
void Exporter<T>::emit_gelu(const Pair& op) {
  const std::string x = name_of(op, 0);
  std::string inner;
  if (op.template attribute<std::string>("approximate") == "none") {
    inner = graph_.node("Erf", {graph_.node("Div", {x, number(std::sqrt(2.0))})});
  } else {
    const std::string cube = graph_.node("Pow", {x, number(3)});
    const std::string sum = graph_.node("Add", {x, graph_.node("Mul", {cube, number(0.044715)})});
    inner = graph_.node("Tanh", {graph_.node("Mul", {sum, number(std::sqrt(2 / std::acos(-1.0)))})});
  }
  const std::string product = graph_.node("Mul", {x, graph_.node("Add", {inner, number(1)})});
  result(op, graph_.node("Mul", {product, number(0.5)}));
}

template <class T>
void Exporter<T>::emit_clamp(const Pair& op) {
  const auto bound = [&](const char* name) {
    return op.has_attribute(name) ? number(op.template attribute<double>(name)) : std::string();
  };
  result(op, graph_.node("Clip", {name_of(op, 0), bound("min"), bound("max")}));
}

/// The weight keeps its layout, (out, in): runtimes turn it once.
template <class T>
std::string Exporter<T>::linear(const std::string& x, const std::string& weight, const std::string& bias) {
  const std::string product = graph_.node("MatMul", {x, transposed(weight, {1, 0})});
  return bias.empty() ? product : graph_.node("Add", {product, bias});
}

template <class T>
void Exporter<T>::emit_linear(const Pair& op) {
  const std::string bias = op.has(2) ? name_of(op, 2) : std::string();
  const bool is_turned = !op.has_attribute("trans_b") || op.template attribute<bool>("trans_b");
  const std::string x = name_of(op, 0), weight = name_of(op, 1);
  const std::string y = is_turned ? linear(x, weight, bias) : graph_.node("MatMul", {x, weight});
  result(op, op.first.op == "linear_relu" ? graph_.node("Relu", {y}) : y);
}

template <class T>
void Exporter<T>::emit_matmul(const Pair& op) {
  const auto operand = [&](std::size_t i, const char* turned) {
    const bool is_turned = op.has_attribute(turned) && op.template attribute<bool>(turned);
    const std::string name = name_of(op, i);
    return is_turned ? last_axes_swapped(name, op.shape(i).size()) : name;
  };
  const std::string a = operand(0, "trans_a"), b = operand(1, "trans_b");
  result(op, graph_.node("MatMul", {a, b}));
}

template <class T>
void Exporter<T>::emit_layer_norm(const Pair& op) {
  const std::size_t weight = op.first.op == "add_layer_norm" ? 2 : 1;
  std::string x = name_of(op, 0);
  if (weight == 2) x = graph_.node("Add", {x, name_of(op, 1)});
  const auto& normalized = op.template attribute<std::vector<std::int64_t>>("normalized_shape");
  Names inputs{x};
  if (op.has(weight)) {
    inputs.push_back(name_of(op, weight));
  } else {
    const Shape shape(normalized.begin(), normalized.end());
    const std::vector<T> ones(element_count(shape), T{1});
    inputs.push_back(graph_.new_name("ones"));
    graph_.initializer(inputs.back(), shape, std::span<const T>(ones));
  }
  if (op.has(weight + 1)) inputs.push_back(name_of(op, weight + 1));
  result(op, graph_.node("LayerNormalization", inputs,
                         AttributeWriter()
                             .integer("axis", -static_cast<std::int64_t>(normalized.size()))
                             .number("epsilon", static_cast<float>(op.template attribute<double>("eps")))));
}

/// Of q, k and v with `rank` axes, in heads if there are any; `scores` is the shape of the scores.
template <class T>
std::string Exporter<T>::attention(const Pair& op, Names qkv, std::size_t rank, const std::string& bias,
                                   const std::pair<Shape, Shape>& scores) {
  const std::int64_t heads = op.template attribute<std::int64_t>("num_heads");
  if (heads > 0) {
    std::vector<std::int64_t> split(rank + 1, 0), perm = counting(rank + 1);
    split[rank - 1] = heads;
    split[rank] = -1;
    std::swap(perm[rank - 2], perm[rank - 1]);
    for (std::string& x : qkv) x = transposed(graph_.node("Reshape", {x, graph_.integers(split)}), perm);
    ++rank;
  }
  std::string s = graph_.node("MatMul", {qkv[0], last_axes_swapped(qkv[1], rank)});
  s = graph_.node("Mul", {s, number(op.template attribute<double>("scale"))});
  if (!bias.empty()) s = graph_.node("Add", {s, bias});
  const auto shown = [&](const std::string& condition) {
    s = graph_.node("Where", {condition, s, number(static_cast<double>(std::numeric_limits<T>::lowest()))});
  };
  if (op.has_attribute("attn_mask"))
    shown(std::apply([&](const Mask& a, const Mask& b) { return condition(a, b); },
                     op.template arrays<Mask>("attn_mask")));
  if (op.template attribute<bool>("is_causal")) {
    const SymbolicShape shape = explained(scores.first, scores.second);
    const auto range = [&](const SymbolicLength& length) {
      const std::string count = graph_.node("Squeeze", {list({length}), graph_.integers({0})});
      return graph_.node("Range", {graph_.integer(0), count, graph_.integer(1)});
    };
    const std::string queries =
        graph_.node("Unsqueeze", {range(shape[shape.size() - 2]), graph_.integers({1})});
    shown(graph_.node("LessOrEqual", {range(shape.back()), queries}));
  }
  const std::string weights = graph_.node("Softmax", {s}, AttributeWriter().integer("axis", -1));
  const std::string y = graph_.node("MatMul", {weights, qkv[2]});
  if (heads == 0) return y;
  std::vector<std::int64_t> perm = counting(rank), joined(rank - 1, 0);
  std::swap(perm[rank - 3], perm[rank - 2]);
  joined.back() = -1;
  return graph_.node("Reshape", {transposed(y, perm), graph_.integers(joined)});
}

template <class T>
void Exporter<T>::emit_attention(const Pair& op) {
  const auto scores = [](const TracedOp<T>& one) {
    return Shape{one.inputs[0].shape(-2), one.inputs[1].shape(-2)};
  };
  const std::string bias = op.has(3) ? name_of(op, 3) : std::string();
  result(op, attention(op, {name_of(op, 0), name_of(op, 1), name_of(op, 2)}, op.shape(0).size(), bias,
                       {scores(op.first), scores(op.second)}));
}

template <class T>
void Exporter<T>::emit_self_attention(const Pair& op) {
  if (op.has_attribute("lengths")) refuse("of packed sequences: switch skip_padding off");
  const auto scores = [](const TracedOp<T>& one) {
    return Shape{one.inputs[0].shape(-2), one.inputs[0].shape(-2)};
  };
  const std::string x = name_of(op, 0);
  Names qkv;
  for (std::size_t part = 1; part <= 3; ++part)
    qkv.push_back(linear(x, name_of(op, part), op.has(part + 3) ? name_of(op, part + 3) : std::string()));
  const std::string bias = op.has(7) ? name_of(op, 7) : std::string();
  result(op, attention(op, qkv, op.shape(0).size(), bias, {scores(op.first), scores(op.second)}));
}

/// Axes are an attribute of all reductions but ReduceSum until operator set 18.
template <class T>
void Exporter<T>::emit_reduction(const Pair& op) {
  const auto& axes = op.template attribute<std::vector<std::int64_t>>("dim");
  const std::int64_t keepdims = op.template attribute<bool>("keepdim") ? 1 : 0;
  const std::string x = name_of(op, 0);
  AttributeWriter attributes;
  attributes.integer("keepdims", keepdims);
  if (op.first.op == "sum")
    return result(op, graph_.node("ReduceSum", {x, graph_.integers(axes)}, attributes));
  attributes.integers("axes", axes);
  const char* const name = op.first.op == "mean"   ? "ReduceMean"
                           : op.first.op == "amax" ? "ReduceMax"
                                                   : "ReduceMin";
  result(op, graph_.node(name, {x}, attributes));
}

template <class T>
void Exporter<T>::emit_softmax(const Pair& op) {
  result(op, graph_.node(op.first.op == "softmax" ? "Softmax" : "LogSoftmax", {name_of(op, 0)},
                         AttributeWriter().integer("axis", op.template attribute<std::int64_t>("dim"))));
}

template <class T>
void Exporter<T>::emit_reshape(const Pair& op) {
  result(op, reshaped(name_of(op, 0), op.shape(0), op.second.inputs[0].shape(), op.first.result.shape(),
                      op.second.result.shape()));
}

template <class T>
void Exporter<T>::emit_permute(const Pair& op) {
  result(op, transposed(name_of(op, 0), op.template attribute<std::vector<std::int64_t>>("dims")));
}

template <class T>
void Exporter<T>::emit_expand(const Pair& op) {
  const SymbolicShape shape = explained(op.first.result.shape(), op.second.result.shape());
  result(op, graph_.node("Expand", {name_of(op, 0), list(shape)}));
}

template <class T>
void Exporter<T>::emit_joined(const Pair& op) {
  const std::int64_t axis = op.template attribute<std::int64_t>("dim");
  Names parts;
  for (std::size_t i = 0; i < op.first.inputs.size(); ++i) {
    parts.push_back(name_of(op, i));
    if (op.first.op == "stack")
      parts.back() = graph_.node("Unsqueeze", {parts.back(), graph_.integers({axis})});
  }
  result(op, graph_.node("Concat", parts, AttributeWriter().integer("axis", axis)));
}

/// slice and select: the part along one axis.
template <class T>
void Exporter<T>::emit_part(const Pair& op) {
  const auto start = op.template attribute<std::int64_t>("start"),
             axis = op.template attribute<std::int64_t>("dim"),
             step = op.template attribute<std::int64_t>("step");
  const std::string x = name_of(op, 0);
  if (op.first.result.dimension() < op.shape(0).size())
    return result(op,
                  graph_.node("Gather", {x, graph_.integer(start)}, AttributeWriter().integer("axis", axis)));
  // where it ends, from the begin and from the end of the axis
  const auto place = static_cast<std::size_t>(axis);
  const auto ends = [&](const TracedOp<T>& one) {
    const auto length = static_cast<std::int64_t>(one.inputs[0].shape()[place]);
    const auto taken = static_cast<std::int64_t>(one.result.shape()[place]);
    const std::int64_t end = std::min(start + taken * step, length);
    return std::pair(end, end - length);
  };
  const auto [first_end, first_rest] = ends(op.first);
  const auto [second_end, second_rest] = ends(op.second);
  std::string end;
  if (first_end == second_end) {
    end = graph_.integers({first_end});
  } else if (first_rest == second_rest) {
    end = graph_.integers({first_rest == 0 ? std::numeric_limits<std::int64_t>::max() : first_rest});
  } else {
    const auto length =
        lengths_.explain(static_cast<std::size_t>(first_end), static_cast<std::size_t>(second_end));
    if (!length)
      refuse("that ends at " + std::to_string(first_end) + " and at " + std::to_string(second_end));
    end = list({*length});
  }
  result(op, graph_.node("Slice", {x, graph_.integers({start}), end, graph_.integers({axis}),
                                   graph_.integers({step})}));
}

template <class T>
void Exporter<T>::emit_embedding(const Pair& op) {
  const std::string places =
      std::apply([&](const Ids& a, const Ids& b) { return ids(a, b); }, op.template arrays<Ids>("ids"));
  result(op, graph_.node("Gather", {name_of(op, 0), places}));
}

template <class T>
void Exporter<T>::emit_index_select(const Pair& op) {
  const std::string places =
      std::apply([&](const Ids& a, const Ids& b) { return ids(a, b); }, op.template arrays<Ids>("index"));
  result(op, graph_.node("Gather", {name_of(op, 0), places},
                         AttributeWriter().integer("axis", op.template attribute<std::int64_t>("dim"))));
}

template <class T>
void Exporter<T>::emit_where(const Pair& op) {
  const std::string choice = std::apply([&](const Mask& a, const Mask& b) { return condition(a, b); },
                                        op.template arrays<Mask>("condition"));
  result(op, graph_.node("Where", {choice, name_of(op, 0), name_of(op, 1)}));
}

/// Masks are derived from what they show.
template <class T>
void Exporter<T>::emit_masked_fill(const Pair& op) {
  const auto [first, second] = op.template arrays<Mask>("mask");
  const std::string shown = condition(Mask(!first), Mask(!second));
  const double value = op.template attribute<double>("value");
  const double filled =
      std::isinf(value) && value < 0 ? static_cast<double>(std::numeric_limits<T>::lowest()) : value;
  result(op, graph_.node("Where", {shown, name_of(op, 0), number(filled)}));
}

template <class T>
const std::map<std::string, typename Exporter<T>::Emit>& Exporter<T>::emitters() {
  static const std::map<std::string, Emit> all = [] {
    std::map<std::string, Emit> emitters;
    for (const auto& [op, name] : unary_operators()) emitters[op] = &Exporter::emit_unary;
    for (const auto& [op, name] : binary_operators()) emitters[op] = &Exporter::emit_binary;
    for (const char* op : {"rsqrt", "square", "cube", "silu"}) emitters[op] = &Exporter::emit_composed_unary;
    for (const char* op : {"linear", "linear_relu"}) emitters[op] = &Exporter::emit_linear;
    for (const char* op : {"layer_norm", "add_layer_norm"}) emitters[op] = &Exporter::emit_layer_norm;
    for (const char* op : {"sum", "mean", "amax", "amin"}) emitters[op] = &Exporter::emit_reduction;
    for (const char* op : {"softmax", "log_softmax"}) emitters[op] = &Exporter::emit_softmax;
    for (const char* op : {"slice", "select"}) emitters[op] = &Exporter::emit_part;
    for (const char* op : {"cat", "stack"}) emitters[op] = &Exporter::emit_joined;
    emitters["gelu"] = &Exporter::emit_gelu;
    emitters["clamp"] = &Exporter::emit_clamp;
    emitters["matmul"] = &Exporter::emit_matmul;
    emitters["scaled_dot_product_attention"] = &Exporter::emit_attention;
    emitters["self_attention"] = &Exporter::emit_self_attention;
    emitters["reshape"] = &Exporter::emit_reshape;
    emitters["permute"] = &Exporter::emit_permute;
    emitters["broadcast_to"] = &Exporter::emit_expand;
    emitters["embedding"] = &Exporter::emit_embedding;
    emitters["index_select"] = &Exporter::emit_index_select;
    emitters["where"] = &Exporter::emit_where;
    emitters["masked_fill"] = &Exporter::emit_masked_fill;
    return emitters;
  }();
  return all;
}

template class Exporter<float>;
template class Exporter<double>;

}  // namespace xgrad::onnx::detail
