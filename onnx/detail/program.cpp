#include "program.hpp"

#include <algorithm>
#include <new>
#include <stdexcept>
#include <type_traits>
#include <unordered_map>

#include "../../base/detail/text/json_text.hpp"
#include "fusion.hpp"
#include "operators/operators.hpp"
#include "types.hpp"

namespace xgrad::onnx::detail {
namespace {

using xgrad::detail::escaped, xgrad::detail::fail, xgrad::detail::in_quotes;

constexpr std::int64_t first_opset = 7, last_opset = 24;

// Elements that a call may hold for each that it was given or that the file holds, unless these are few.
constexpr std::size_t results_per_element = 1024;

/// "Add 'encoder/add'", or "node 3 (Add)".
std::string name_of(const Node& node, std::size_t number) {
  if (node.name.empty()) return "node " + std::to_string(number) + " (" + escaped(node.op) + ")";
  return escaped(node.op) + " " + in_quotes(node.name);
}

/// Rethrows what is being thrown, with the step's name in front, but behind that of the module that runs.
[[noreturn]] void rethrow_with(const std::string& name) {
  const auto named = [&](const std::string& text) {
    const std::string module = xgrad::detail::module_prefix();
    const std::size_t begin = text.starts_with(module) ? module.size() : 0;
    return text.substr(0, begin) + name + ": " + text.substr(begin);
  };
  try {
    throw;
  } catch (const ShapeError& error) {
    throw ShapeError(named(error.what()));
  } catch (const IndexError& error) {
    throw IndexError(named(error.what()));
  } catch (const std::invalid_argument& error) {
    throw ValueError(named(error.what()));
  }
}

/// What a file has and xgrad::onnx has not: all at once, each with the number of its nodes and the first one.
class Lacks {
 public:
  void add_operator(const std::string& name, const std::string& node) { add(operators_, name, node); }
  /// What is wrong with a node of an operator that there is.
  void add_node(const std::string& op, const std::string& node, const std::string& what) {
    add(nodes_, op + ": " + what, node + ": " + what);
  }
  void add(const std::string& what) { others_.push_back(what); }

  void throw_if_any() const {
    std::string text;
    for (const auto& [name, found] : operators_) {
      text += (text.empty() ? "operators that are not supported: " : ", ") + escaped(name) + " (" +
              (found.count == 1 ? "" : std::to_string(found.count) + " nodes, the first is ") + found.first +
              ")";
    }
    if (!text.empty()) text += advice();
    for (const std::string& what : others_) text += (text.empty() ? "" : "; ") + what;
    for (const auto& [what, found] : nodes_) {
      text += (text.empty() ? "" : "; ") + found.first;
      if (found.count > 1) text += " (and in " + std::to_string(found.count - 1) + " more nodes)";
    }
    if (!text.empty()) fail<ValueError>(text);
  }

 private:
  struct Found {
    std::size_t count = 0;
    std::string first;
  };
  using List = std::vector<std::pair<std::string, Found>>;

  static void add(List& list, const std::string& key, const std::string& first) {
    auto found = std::find_if(list.begin(), list.end(), [&](const auto& one) { return one.first == key; });
    if (found == list.end()) found = list.insert(list.end(), {key, {0, first}});
    ++found->second.count;
  }

  /// What may help against operators that are missing.
  std::string advice() const {
    const auto has = [&](const auto& is_it) {
      return std::any_of(operators_.begin(), operators_.end(),
                         [&](const auto& one) { return is_it(one.first); });
    };
    if (has([](const std::string& name) { return name.starts_with("com.microsoft."); }))
      return "; export the model without ONNX Runtime's optimisations";
    if (has([](const std::string& name) {
          return name.starts_with("org.pytorch.aten") || name == "Loop" || name == "Scan" ||
                 name.starts_with("Sequence");
        }))
      return "; a transformer may do without them if it is loaded with attn_implementation=\"eager\"";
    return "";
  }

  List operators_, nodes_;
  std::vector<std::string> others_;
};

/// The operators of a file's nodes, by the name of a node's first output.
template <class T>
using OperatorsOfFile = std::unordered_map<std::string, std::pair<const Node*, Operator<T>>>;

/// Numbers the values of a graph, those of initializers first, and makes the operators of its nodes, or of
/// others that take their place.
template <class T>
class Compiler {
 public:
  Compiler(const Subgraph& graph, const std::vector<Node>& nodes, std::int64_t opset, Lacks& lacks)
      : graph_(graph), nodes_(nodes), opset_(opset), lacks_(lacks) {}
  /// Of the nodes of fused(), which share operators with those of the file.
  Compiler(const Subgraph& graph, const std::vector<Node>& nodes, std::int64_t opset, Lacks& lacks,
           const OperatorsOfFile<T>& of_file)
      : graph_(graph), nodes_(nodes), opset_(opset), lacks_(lacks), of_file_(&of_file) {}

  /// `outside` are the values that the graph reads of the graph around it, with their types: its inputs.
  Program<T> compile(const std::vector<std::pair<std::string, std::int64_t>>& outside = {}) {
    for (const Tensor& tensor : graph_.initializers) {
      if (tensor.view.name.empty()) fail<ValueError>("a tensor of the graph must have a name, got none");
      new_slot(tensor.view.name, tensor.type);
      if (tensor.type == data_type::boolean && tensor.view.shape.empty() && tensor.is_supported)
        conditions_.emplace(tensor.view.name, *to_array<bool>(tensor.view).data());
    }
    for (const auto& [name, type] : outside) program_.input_slots.push_back(new_slot(name, type));
    for (const ValueInfo& input : graph_.inputs) {
      if (slots_.contains(input.name)) continue;
      program_.inputs.push_back(described(input));
      program_.input_slots.push_back(new_slot(input.name, input.type));
    }
    for (std::size_t i = 0; i < nodes_.size(); ++i) add_step(i);
    for (const ValueInfo& output : graph_.outputs) {
      program_.outputs.push_back(described(output));
      program_.output_slots.push_back(slot_of(output.name, "the outputs"));
    }
    note_last_uses();
    program_.slots = slots_.size();
    return std::move(program_);
  }

  /// The operators of the program that was compiled.
  OperatorsOfFile<T> made(const Program<T>& program) const {
    OperatorsOfFile<T> all;
    for (std::size_t i = 0; i < nodes_.size(); ++i)
      all.emplace(nodes_[i].outputs[0], std::pair(&nodes_[i], program.steps[i].compute));
    return all;
  }

 private:
  ValueDescription described(const ValueInfo& info) {
    if (!info.is_tensor)
      lacks_.add(in_quotes(info.name) + ": sequences, maps, optionals and sparse tensors are not supported");
    return description_of(info);
  }

  std::size_t new_slot(const std::string& name, std::int64_t type) {
    const auto [place, is_new] = slots_.try_emplace(name, slots_.size());
    if (!is_new) fail<ValueError>("there are two values ", in_quotes(name));
    types_.push_back(type);
    return place->second;
  }

  std::size_t slot_of(const std::string& name, const std::string& reader) const {
    const auto found = slots_.find(name);
    if (found == slots_.end())
      fail<ValueError>(reader, ": no earlier node computes the value ", in_quotes(name));
    return found->second;
  }

  void add_step(std::size_t number) {
    const Node& node = nodes_[number];
    if (node.outputs.empty()) fail<ValueError>(escaped(node.op), ": a node must have an output");
    Step<T> step{name_of(node, number), {}, {}, {}, {}};
    std::vector<std::int64_t> types;
    for (const std::string& input : node.inputs) {
      step.inputs.push_back(input.empty() ? no_slot : slot_of(input, step.name));
      types.push_back(input.empty() ? 0 : types_[step.inputs.back()]);
    }
    try {
      step.compute = operator_of(node, types, step.name);
    } catch (const std::invalid_argument& error) {
      lacks_.add_node(node.operator_name(), step.name, error.what());
    } catch (const IndexError& error) {
      lacks_.add_node(node.operator_name(), step.name, error.what());
    }
    const std::vector<std::int64_t> made =
        node.operator_name() == "If" ? branch_types_ : output_types(node, types);
    for (std::size_t i = 0; i < node.outputs.size(); ++i)
      step.outputs.push_back(node.outputs[i].empty() ? no_slot : new_slot(node.outputs[i], made[i]));
    note_condition(node);
    program_.steps.push_back(std::move(step));
  }

  Operator<T> operator_of(const Node& node, const std::vector<std::int64_t>& types, const std::string& name) {
    ++program_.operators[node.operator_name()];
    if (of_file_ != nullptr) {
      const auto same = of_file_->find(node.outputs[0]);
      if (same != of_file_->end() && is_same(*same->second.first, node)) {
        branch_types_.assign(node.outputs.size(), 0);
        return same->second.second;
      }
    }
    if (node.operator_name() == "If") return branches(node, types);
    // operators of fused nodes rely on what fused() has checked
    const bool is_fused = of_file_ != nullptr && node.domain == fused_domain;
    const OperatorTable<T>& table = is_fused ? fused_operators<T>() : operators<T>();
    const auto found = table.find(is_fused ? node.op : node.operator_name());
    if (found == table.end()) {
      lacks_.add_operator(node.operator_name(), name);
      return {};
    }
    NodeAttributes attributes(node);
    Operator<T> made =
        found->second({attributes, opset_, node.outputs.size(), types, node.inputs, node.outputs});
    attributes.check_all_read();
    return made;
  }

  /// Whether fused() has kept a node as it is.
  static bool is_same(const Node& a, const Node& b) {
    return a.op == b.op && a.domain == b.domain && a.inputs == b.inputs && a.outputs == b.outputs;
  }

  /// An If: the program of the branch that the condition takes. The other one is not looked at where the
  /// condition is a constant.
  Operator<T> branches(const Node& node, const std::vector<std::int64_t>& types) {
    struct Branch {
      Program<T> program;
      std::vector<std::size_t> outside;  // its inputs among those of the node
    };
    branch_types_.assign(node.outputs.size(), 0);
    for (const Attribute& attribute : node.attributes)
      if (attribute.name != "then_branch" && attribute.name != "else_branch")
        fail<ValueError>("attribute ", in_quotes(attribute.name), " is not supported");
    if (node.inputs.empty()) fail<ValueError>("the condition is missing");
    const auto constant = conditions_.find(node.inputs[0]);
    auto both = std::make_shared<std::array<std::optional<Branch>, 2>>();
    for (const bool is_then : {false, true}) {
      const std::string name = is_then ? "then_branch" : "else_branch";
      const auto attribute = std::find_if(node.attributes.begin(), node.attributes.end(),
                                          [&](const Attribute& one) { return one.name == name; });
      if (attribute == node.attributes.end() || attribute->graph == nullptr)
        fail<ValueError>("attribute ", in_quotes(name), " must hold a graph");
      const Subgraph& graph = *attribute->graph;
      if (!graph.inputs.empty() || graph.outputs.size() != node.outputs.size())
        fail<ValueError>(name, " must have no input and ", node.outputs.size(), " outputs");
      if (constant != conditions_.end() && constant->second != is_then) continue;
      Branch branch;
      std::vector<std::pair<std::string, std::int64_t>> outside;
      for (const std::string& value : graph.values_from_outside()) {
        const auto place = std::find(node.inputs.begin(), node.inputs.end(), value) - node.inputs.begin();
        branch.outside.push_back(static_cast<std::size_t>(place));
        outside.emplace_back(value, types[branch.outside.back()]);
      }
      Compiler<T> compiler(graph, graph.nodes, opset_, lacks_);
      branch.program = compiler.compile(outside);
      for (std::size_t i = 0; i < branch_types_.size(); ++i)
        branch_types_[i] = compiler.types_[branch.program.output_slots[i]];
      for (const auto& [name_of_operator, count] : branch.program.operators)
        program_.operators[name_of_operator] += count;
      for (std::size_t i = 0; i < graph.initializers.size(); ++i)
        branch.program.constants.emplace_back(i, value_of<T>(graph.initializers[i]));
      (*both)[is_then ? 1 : 0] = std::move(branch);
    }
    return [both](const Arguments<T>& given) {
      const Mask& condition = given.conditions(0);
      if (condition.size() != 1) fail<ShapeError>("the condition must be one, got ", condition.shape());
      const Branch& branch = *(*both)[*condition.data() ? 1 : 0];
      std::vector<const Value<T>*> values;
      for (const std::size_t i : branch.outside) values.push_back(&given.value(i));
      return branch.program.run(values, given.is_training(), given.most(), given.held());
    };
  }

  /// Keeps a condition that is a constant.
  void note_condition(const Node& node) {
    if (node.op != "Constant" || node.outputs.empty()) return;
    for (const Attribute& attribute : node.attributes) {
      if (!attribute.tensor || attribute.tensor->type != data_type::boolean) continue;
      const TensorView& view = attribute.tensor->view;
      if (element_count(view.shape) == 1) conditions_.emplace(node.outputs[0], *to_array<bool>(view).data());
    }
  }

  void note_last_uses() {
    std::vector<bool> is_used(slots_.size());
    for (const std::size_t slot : program_.output_slots) is_used[slot] = true;
    for (std::size_t i = program_.steps.size(); i-- > 0;) {
      Step<T>& step = program_.steps[i];
      for (const auto* list : {&step.outputs, &step.inputs}) {
        for (const std::size_t slot : *list) {
          if (slot == no_slot || is_used[slot]) continue;
          is_used[slot] = true;
          step.done.push_back(slot);
        }
      }
    }
  }

  const Subgraph& graph_;
  const std::vector<Node>& nodes_;
  std::int64_t opset_;
  Lacks& lacks_;
  const OperatorsOfFile<T>* of_file_ = nullptr;
  Program<T> program_;
  std::unordered_map<std::string, std::size_t> slots_;
  std::vector<std::int64_t> types_;         // of the slots
  std::vector<std::int64_t> branch_types_;  // of the outputs of the If that is compiled
  std::unordered_map<std::string, bool> conditions_;
};

}  // namespace

ValueDescription description_of(const ValueInfo& info) {
  ValueDescription description{info.name, name_of_data_type(info.type), std::nullopt};
  if (!info.shape) return description;
  description.shape.emplace();
  for (const auto& [length, name] : *info.shape) {
    const bool is_fixed = length && *length >= 0;
    description.shape->push_back(
        {is_fixed ? std::optional(static_cast<std::size_t>(*length)) : std::nullopt, name});
  }
  return description;
}

template <class T>
Program<T> compiled(const Model& model) {
  Lacks lacks;
  const bool needs_opset = std::any_of(model.nodes.begin(), model.nodes.end(),
                                       [](const Node& node) { return node.operator_name() == node.op; });
  if (model.opset == 0 && needs_opset) {
    lacks.add("the version of ONNX's operators is missing (opset_import)");
  } else if (needs_opset && (model.opset < first_opset || model.opset > last_opset)) {
    lacks.add("operator sets " + std::to_string(first_opset) + " to " + std::to_string(last_opset) +
              " are supported, got " + std::to_string(model.opset));
  }
  for (const Tensor& tensor : model.initializers) {
    if (tensor.is_supported) continue;
    lacks.add("tensor " + in_quotes(tensor.view.name) + ": elements of type " +
              name_of_data_type(tensor.type) + " are not supported");
  }
  // what is wrong is told of the file's own nodes
  Compiler<T> compiler(model, model.nodes, model.opset, lacks);
  Program<T> of_file = compiler.compile();
  lacks.throw_if_any();
  const std::vector<Node> nodes = fused(model, std::is_same_v<T, float>);
  const OperatorsOfFile<T> made = compiler.made(of_file);
  Program<T> program = Compiler<T>(model, nodes, model.opset, lacks, made).compile();
  lacks.throw_if_any();
  program.operators = std::move(of_file.operators);
  const std::vector<bool> is_read = program.read_slots();
  for (std::size_t i = 0; i < model.initializers.size(); ++i) {
    if (is_read[i] || has_floats(model.initializers[i]))
      program.constants.emplace_back(i, value_of<T>(model.initializers[i]));
  }
  return program;
}

template <class T>
std::vector<bool> Program<T>::read_slots() const {
  std::vector<bool> is_read(slots);
  for (const std::size_t slot : output_slots) is_read[slot] = true;
  for (const Step<T>& step : steps)
    for (const std::size_t slot : step.inputs)
      if (slot != no_slot) is_read[slot] = true;
  return is_read;
}

template <class T>
std::vector<Value<T>> Program<T>::run(const std::vector<const Value<T>*>& inputs_given, bool is_training,
                                      std::size_t most, std::size_t held) const {
  // what the steps make, and where all values are
  std::vector<std::optional<Value<T>>> made(slots);
  std::vector<const Value<T>*> values(slots);
  std::size_t count = held;
  for (const auto& [slot, value] : constants) {
    values[slot] = &value;
    count += element_count(shape_of<T>(value));
  }
  for (std::size_t i = 0; i < input_slots.size(); ++i) {
    values[input_slots[i]] = inputs_given[i];
    if (most == 0) count += element_count(shape_of<T>(*inputs_given[i]));  // a branch's are held already
  }
  if (most == 0) most = std::max(always_allowed, count * results_per_element);
  std::vector<const Value<T>*> given;
  for (const Step<T>& step : steps) {
    given.clear();
    for (const std::size_t slot : step.inputs) given.push_back(slot == no_slot ? nullptr : values[slot]);
    try {
      std::vector<Value<T>> results = step.compute({given, most, is_training, count});
      for (std::size_t i = 0; i < step.outputs.size(); ++i) {
        const std::size_t slot = step.outputs[i];
        if (slot == no_slot) continue;
        if (i >= results.size())
          fail<ValueError>("there are ", results.size(), " results, the graph asks for ",
                           step.outputs.size());
        count += element_count(shape_of<T>(results[i]));
        made[slot] = std::move(results[i]);
        values[slot] = &*made[slot];
      }
      if (count > most) fail<ValueError>("all values together would have more than ", most, " elements");
    } catch (const std::length_error&) {
      fail<ValueError>(step.name, ": its result does not fit into memory");
    } catch (const std::logic_error&) {
      rethrow_with(step.name);
    }
    for (const std::size_t slot : step.done) {
      count -= element_count(shape_of<T>(*values[slot]));
      made[slot].reset();
    }
  }
  std::vector<Value<T>> results;
  for (const std::size_t slot : output_slots) results.push_back(*values[slot]);
  return results;
}

template Program<float> compiled(const Model&);
template Program<double> compiled(const Model&);
template struct Program<float>;
template struct Program<double>;

}  // namespace xgrad::onnx::detail
