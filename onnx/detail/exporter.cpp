#include "exporter.hpp"

#include <algorithm>
#include <bit>

#include "../../base/detail/text/json_text.hpp"
#include "../../base/error.hpp"
#include "emitters/emitters.hpp"

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

/// The ids (length, length) by the distances of columns from rows, from -(length - 1) on: those of the first
/// column and of the first row. Empty if they are not square.
std::vector<std::int64_t> by_distance(const Ids& ids) {
  std::vector<std::int64_t> table;
  if (ids.dimension() != 2 || ids.shape()[0] != ids.shape()[1]) return table;
  const std::size_t length = ids.shape()[0];
  for (std::size_t row = length; row-- > 1;) table.push_back(ids(row, 0));
  for (std::size_t col = 0; col < length; ++col) table.push_back(ids(0, col));
  return table;
}

/// Whether the ids are those of the table, which may be that of longer ones.
bool are_by_distance(const Ids& ids, const std::vector<std::int64_t>& table) {
  if (ids.dimension() != 2 || ids.shape()[0] != ids.shape()[1]) return false;
  for (std::size_t i = 0; i < ids.shape()[0]; ++i)
    for (std::size_t j = 0; j < ids.shape()[1]; ++j)
      if (ids(i, j) != table[table.size() / 2 + j - i]) return false;
  return true;
}

template <class T>
const EmitterTable<T>& emitters() {
  static const EmitterTable<T> table = [] {
    EmitterTable<T> all;
    add_elementwise_emitters(all);
    add_shape_emitters(all);
    add_network_emitters(all);
    add_reduction_emitters(all);
    add_window_emitters(all);
    add_recurrent_emitters(all);
    return all;
  }();
  return table;
}

}  // namespace

bool has_emitter(const std::string& op) { return emitters<float>().contains(op); }

template <class T>
Exporter<T>::Exporter(const Module<T>& model, std::int64_t opset, const AxisLengths& lengths,
                      const InputAxes& axes, const TracedCall<T>& first, const TracedCall<T>& second)
    : lengths_(lengths),
      axes_(axes),
      first_(first),
      second_(second),
      graph_(opset),
      axis_lengths_(lengths.size()) {
  add_inputs();
  for (const auto& result : first.results) take_name(result.first, "output");
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
    std::string text = "onnx::save: cannot export ";
    for (std::size_t i = 0; i < problems_.size(); ++i) text += (i == 0 ? "" : "; ") + problems_[i];
    throw ValueError(text);
  }
  return std::move(graph_);
}

template <class T>
void Exporter<T>::take_name(const std::string& name, const char* of) {
  if (graph_.new_name(name) != name)
    xgrad::detail::fail<ValueError>(
        "onnx::save: inputs, outputs and parameters must have different names, the ", of, " ",
        in_quotes(name), " has that of another");
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
    take_name(name, "input");
    const Variable<T>* const floats = std::get_if<Variable<T>>(&value);
    graph_.input(name, floats != nullptr ? float_type : 7, axes);
    if (floats != nullptr) names_[address(*floats)] = name;
  }
}

template <class T>
void Exporter<T>::add_parameters(const Module<T>& model) {
  std::vector<NamedParameter<T>> saved = model.named_parameters();
  for (NamedParameter<T>& buffer : model.named_buffers()) saved.push_back(std::move(buffer));
  for (const auto& [name, one] : saved) {
    take_name(name, "parameter");
    names_[address(one)] = name;
  }
  // all have their names before the first is written, as no other value may take one
  for (const auto& [name, one] : saved)
    graph_.initializer(name, one.shape(), std::span<const T>(one.value().data(), one.size()));
}

template <class T>
void Exporter<T>::add_op(const OpPair<T>& op) {
  if (names_.contains(address(op.first.result))) return;  // an input as it is
  const std::string module = op.first.modules.empty() ? "" : op.first.modules.front().name;
  std::string scope = module;
  std::ranges::replace(scope, '.', '/');
  graph_.begin_scope(scope.empty() ? "" : scope + "/");
  const std::string where = module.empty() ? "" : " in " + module;
  try {
    if (op.info() != *op.second.op)
      refuse(std::string("which becomes another op for other lengths: ") + op.second.op->name);
    const auto found = emitters<T>().find(op.info().name);
    if (found == emitters<T>().end()) refuse("which has no ONNX operator");
    found->second(*this, op);
  } catch (const ExportProblem& problem) {
    const std::string text = "'" + std::string(op.info().name) + "'" + where + ", " + problem.text;
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
      problems_.push_back("the output " + in_quotes(name) + ", which no op of the model computed");
      continue;
    }
    std::vector<GraphWriter::Axis> axes;
    const Shape& second = shape_of<T>(second_.results.at(name));
    if (second.size() != floats->dimension()) {
      problems_.push_back("the output " + in_quotes(name) +
                          ", which has another number of axes for other lengths");
      continue;
    }
    for (std::size_t i = 0; i < second.size(); ++i) {
      const auto length = lengths_.explain(floats->shape()[i], second[i]);
      const bool is_named = length && length->factor == 1 && length->axes.size() == 1;
      axes.push_back({length && length->is_fixed() ? static_cast<std::int64_t>(length->factor) : -1,
                      is_named ? lengths_.name(length->axes[0]) : ""});
    }
    graph_.node("Identity", {made->second}, {}, name);
    graph_.output(name, float_type, axes);
  }
}

// ---- Values ----

template <class T>
std::string Exporter<T>::name_of(const OpPair<T>& op, std::size_t input) {
  if (!op.has(input)) refuse("which lacks its input " + std::to_string(input));
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
  std::string& name = numbers_[std::bit_cast<std::uint64_t>(value)];
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
  if (same_elements(first, second)) {
    const std::string name = graph_.new_name("condition");
    graph_.initializer(name, first.shape(), std::span<const bool>(first.data(), first.size()));
    return name;
  }
  refuse("a condition " + to_string(first.shape()) + " that is not a comparison of an input with one number");
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
  const std::string text = "a constant " + to_string(first.shape()) + " that changes with the lengths";
  const Mask of_first = mask_of(first), of_second = mask_of(second);
  if (!are_shares(first, of_first) || !are_shares(second, of_second)) refuse(text);
  const std::string counts =
      graph_.node("Cast", {condition(of_first, of_second)}, AttributeWriter().integer("to", float_type));
  const std::string sum = graph_.node("ReduceSum", {counts, graph_.integers({-1})});
  return graph_.node("Div", {counts, graph_.node("Max", {sum, number(1)})});
}

template <class T>
std::string Exporter<T>::ids(const Ids& first, const Ids& second) {
  for (const auto& [name, value] : first_.given) {
    const Ids* const of_first = std::get_if<Ids>(&value);
    if (of_first == nullptr || of_first->dimension() == 0 || of_first->size() != first.size()) continue;
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
  if (same_elements(first, second)) {
    const std::string name = graph_.new_name("ids");
    graph_.initializer(name, first.shape(), std::span<const std::int64_t>(first.data(), first.size()));
    return name;
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
  const Ids& longer = first.size() < second.size() ? second : first;
  const std::vector<std::int64_t> table = by_distance(longer);
  if (!table.empty() && are_by_distance(first, table) && are_by_distance(second, table)) {
    const SymbolicShape shape = explained(first.shape(), second.shape());
    const std::string length = graph_.node("Squeeze", {list({shape.back()}), graph_.integers({0})});
    const std::string range = graph_.node("Range", {graph_.integer(0), length, graph_.integer(1)});
    const std::string distances =
        graph_.node("Sub", {range, graph_.node("Unsqueeze", {range, graph_.integers({1})})});
    const std::string middle = graph_.integer(static_cast<std::int64_t>(table.size() / 2));
    return graph_.node("Gather", {graph_.integers(table), graph_.node("Add", {distances, middle})});
  }
  refuse("ids " + to_string(first.shape()) + " that do not depend on an input in a supported way");
}

// ---- Shapes ----

template <class T>
SymbolicShape Exporter<T>::explained(const Shape& first, const Shape& second) const {
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
  GraphWriter::Names parts;
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
std::string Exporter<T>::transposed(const std::string& x, const std::vector<std::int64_t>& perm) {
  return graph_.node("Transpose", {x}, AttributeWriter().integers("perm", perm));
}

template <class T>
std::string Exporter<T>::sliced(const std::string& x, std::int64_t axis, const std::string& start,
                                const std::string& end, std::int64_t step) {
  return graph_.node("Slice", {x, start, end, graph_.integers({axis}), graph_.integers({step})});
}

template <class T>
std::string Exporter<T>::reduced(const std::string& name, const std::string& x,
                                 const std::vector<std::int64_t>& axes, bool keepdims) {
  AttributeWriter attributes;
  attributes.integer("keepdims", keepdims ? 1 : 0);
  if (graph_.opset() >= 18 || name == "ReduceSum")
    return graph_.node(name, {x, graph_.integers(axes)}, attributes);
  return graph_.node(name, {x}, attributes.integers("axes", axes));
}

template <class T>
void Exporter<T>::result(const OpPair<T>& op, const std::string& name) {
  names_[address(op.first.result)] = name;
}

template class Exporter<float>;
template class Exporter<double>;

}  // namespace xgrad::onnx::detail
