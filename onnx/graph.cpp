#include "graph.hpp"

#include <new>
#include <stdexcept>
#include <unordered_map>
#include <utility>

#include "../base/detail/json_text.hpp"
#include "detail/fusion.hpp"
#include "detail/operators.hpp"

namespace xgrad::onnx {

using xgrad::detail::fail, xgrad::detail::in_quotes;

namespace detail {

constexpr std::size_t no_slot = static_cast<std::size_t>(-1);

/// A node, whose values have numbers instead of names.
template <class T>
struct Step {
  std::string name;  // "Add 'encoder/add'"
  Operator<T> compute;
  std::vector<std::size_t> inputs, outputs;  // no_slot for one that is left out
  std::vector<std::size_t> done;             // values that no later step reads
};

template <class T>
struct Program {
  std::vector<ValueDescription> inputs, outputs;
  std::map<std::string, std::size_t> operators;
  std::vector<std::size_t> input_slots, output_slots;
  std::vector<std::pair<std::size_t, Value<T>>> constants;  // parameters among them
  std::vector<Step<T>> steps;
  std::size_t slots = 0;
};

}  // namespace detail

namespace {

using detail::no_slot;

constexpr std::int64_t first_opset = 7, last_opset = 20;

// Elements that a call may hold for each that it was given or that the file holds, unless these are few.
constexpr std::size_t results_per_element = 1024;

ValueDescription description_of(const detail::ValueInfo& info) {
  if (!info.is_tensor) {
    fail<ValueError>(in_quotes(info.name),
                     ": sequences, maps, optionals and sparse tensors are not supported");
  }
  ValueDescription description{info.name, detail::name_of_data_type(info.type), std::nullopt};
  if (!info.shape) return description;
  description.shape.emplace();
  for (const auto& [length, name] : *info.shape) {
    const bool is_fixed = length && *length >= 0;
    description.shape->push_back(
        {is_fixed ? std::optional(static_cast<std::size_t>(*length)) : std::nullopt, name});
  }
  return description;
}

/// "Add 'encoder/add'", or "node 3 (Add)".
std::string name_of(const detail::Node& node, std::size_t number) {
  if (node.name.empty()) return "node " + std::to_string(number) + " (" + node.op + ")";
  return node.op + " " + in_quotes(node.name);
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

/// Names all operators that are missing at once, and counts those that there are.
template <class T>
std::map<std::string, std::size_t> checked_operators(const detail::Model& model) {
  std::map<std::string, std::size_t> counts;
  std::string missing;
  for (const detail::Node& node : model.nodes) {
    if (node.outputs.empty()) fail<ValueError>(node.op, ": a node must have an output");
    const bool is_own = node.domain.empty() || node.domain == "ai.onnx";
    const std::string name = is_own ? node.op : node.domain + "." + node.op;
    if (counts[name]++ != 0) continue;
    if (is_own && detail::operators<T>().contains(node.op)) continue;
    missing += (missing.empty() ? "" : ", ") + name;
  }
  if (!missing.empty()) fail<ValueError>("operators that are not supported: ", missing);
  if (model.opset == 0) fail<ValueError>("the version of ONNX's operators is missing (opset_import)");
  if (model.opset < first_opset || model.opset > last_opset)
    fail<ValueError>("operator sets ", first_opset, " to ", last_opset, " are supported, got ", model.opset);
  return counts;
}

/// Numbers the values of a model, those of initializers first, and makes the operators of its nodes, or of
/// others that take their place.
template <class T>
class Compiler {
 public:
  Compiler(const detail::Model& model, const std::vector<detail::Node>& nodes)
      : model_(model), nodes_(nodes) {}

  detail::Program<T> compile() {
    for (const detail::Tensor& tensor : model_.initializers) new_slot(tensor.view.name);
    for (const detail::ValueInfo& input : model_.inputs) {
      if (slots_.contains(input.name)) continue;
      program_.inputs.push_back(description_of(input));
      program_.input_slots.push_back(new_slot(input.name));
    }
    for (std::size_t i = 0; i < nodes_.size(); ++i) add_step(i);
    for (const detail::ValueInfo& output : model_.outputs) {
      program_.outputs.push_back(description_of(output));
      program_.output_slots.push_back(slot_of(output.name, "the outputs"));
    }
    note_last_uses();
    program_.slots = slots_.size();
    return std::move(program_);
  }

 private:
  std::size_t new_slot(const std::string& name) {
    const auto [place, is_new] = slots_.try_emplace(name, slots_.size());
    if (!is_new) fail<ValueError>("there are two values ", in_quotes(name));
    return place->second;
  }

  std::size_t slot_of(const std::string& name, const std::string& reader) const {
    const auto found = slots_.find(name);
    if (found == slots_.end())
      fail<ValueError>(reader, ": no earlier node computes the value ", in_quotes(name));
    return found->second;
  }

  void add_step(std::size_t number) {
    const detail::Node& node = nodes_[number];
    detail::Step<T> step{name_of(node, number), {}, {}, {}, {}};
    for (const std::string& input : node.inputs)
      step.inputs.push_back(input.empty() ? no_slot : slot_of(input, step.name));
    try {
      detail::NodeAttributes attributes(node);
      const bool is_fused = node.domain == detail::fused_domain;
      step.compute = (is_fused ? detail::fused_operators<T>() : detail::operators<T>())
                         .at(node.op)({attributes, model_.opset, node.inputs.size(), node.outputs.size()});
      attributes.check_all_read();
    } catch (const std::invalid_argument&) {
      rethrow_with(step.name);
    }
    for (const std::string& output : node.outputs)
      step.outputs.push_back(output.empty() ? no_slot : new_slot(output));
    program_.steps.push_back(std::move(step));
  }

  void note_last_uses() {
    std::vector<bool> is_used(slots_.size());
    for (const std::size_t slot : program_.output_slots) is_used[slot] = true;
    for (std::size_t i = program_.steps.size(); i-- > 0;) {
      detail::Step<T>& step = program_.steps[i];
      for (const auto* list : {&step.outputs, &step.inputs}) {
        for (const std::size_t slot : *list) {
          if (slot == no_slot || is_used[slot]) continue;
          is_used[slot] = true;
          step.done.push_back(slot);
        }
      }
    }
  }

  const detail::Model& model_;
  const std::vector<detail::Node>& nodes_;
  detail::Program<T> program_;
  std::unordered_map<std::string, std::size_t> slots_;
};

template <class T>
detail::Program<T> compiled(const std::string& path, const detail::Model& model) {
  try {
    const auto operators = checked_operators<T>(model);
    Compiler<T>(model, model.nodes).compile();  // what is wrong is told of the file's own nodes
    const std::vector<detail::Node> nodes = fused(model);
    detail::Program<T> program = Compiler<T>(model, nodes).compile();
    program.operators = operators;
    for (std::size_t i = 0; i < model.initializers.size(); ++i)
      program.constants.emplace_back(i, detail::value_of<T>(model.initializers[i]));
    return program;
  } catch (const std::invalid_argument& error) {
    throw FileError(path + ": " + error.what());
  } catch (const IndexError& error) {
    throw FileError(path + ": " + error.what());
  } catch (const std::bad_alloc&) {
    throw FileError(path + ": its initializers do not fit into memory");
  }
}

/// Throws unless the value can be this input.
template <class T>
void check_input(const ValueDescription& input, const Value<T>& value) {
  constexpr const char* kinds[] = {"floats", "integers", "conditions"};
  const bool is_float =
      input.type == "FLOAT" || input.type == "DOUBLE" || input.type == "FLOAT16" || input.type == "BFLOAT16";
  const std::size_t expected = is_float ? 0 : input.type == "BOOL" ? 2 : 1;
  if (value.index() != expected) {
    fail<ValueError>("input ", in_quotes(input.name), " must hold ", kinds[expected], ", got ",
                     kinds[value.index()]);
  }
  if (!input.shape) return;
  const Shape& shape = shape_of<T>(value);
  bool fits = shape.size() == input.shape->size();
  std::string wanted;
  for (std::size_t axis = 0; axis < input.shape->size(); ++axis) {
    const auto& [fixed, name] = (*input.shape)[axis];
    fits = fits && (!fixed || *fixed == shape[axis]);
    wanted += (axis == 0 ? "" : ", ") + (fixed ? std::to_string(*fixed) : name.empty() ? "any" : name);
  }
  if (!fits)
    fail<ShapeError>("input ", in_quotes(input.name), " must have the shape (", wanted, "), got ", shape);
}

}  // namespace

template <class T>
Graph<T>::Graph(const std::string& path) : Graph(path, detail::read_model(path)) {}

template <class T>
Graph<T>::Graph(const std::string& name, std::span<const std::byte> bytes)
    : Graph(name, detail::read_model(name, bytes)) {}

template <class T>
Graph<T>::Graph(const std::string& name, const detail::Model& model) : Module<T>("onnx::Graph") {
  auto program = std::make_shared<detail::Program<T>>(compiled<T>(name, model));
  for (std::size_t i = 0; i < model.initializers.size(); ++i) {
    Value<T>& value = program->constants[i].second;
    const Variable<T>* floats = std::get_if<Variable<T>>(&value);
    if (floats == nullptr || floats->dimension() == 0) continue;
    value = this->parameter(model.initializers[i].view.name, floats->value());
  }
  program_ = std::move(program);
}

template <class T>
std::vector<ValueDescription> Graph<T>::inputs() const {
  return program_->inputs;
}

template <class T>
std::vector<ValueDescription> Graph<T>::outputs() const {
  return program_->outputs;
}

template <class T>
std::map<std::string, std::size_t> Graph<T>::operators() const {
  return program_->operators;
}

template <class T>
Values<T> Graph<T>::operator()(const Values<T>& inputs) const {
  const auto scope = this->scope();
  const detail::Program<T>& program = *program_;
  std::vector<std::optional<Value<T>>> values(program.slots);
  for (const auto& [slot, value] : program.constants) values[slot] = value;
  for (std::size_t i = 0; i < program.inputs.size(); ++i) {
    const auto given = inputs.find(program.inputs[i].name);
    if (given == inputs.end()) fail<ValueError>("input ", in_quotes(program.inputs[i].name), " is missing");
    check_input<T>(program.inputs[i], given->second);
    values[program.input_slots[i]] = given->second;
  }
  if (inputs.size() > program.inputs.size()) {
    const auto is_unknown = [&](const auto& input) {
      return std::ranges::find(program.inputs, input.first, &ValueDescription::name) == program.inputs.end();
    };
    fail<ValueError>("there is no input ", in_quotes(std::ranges::find_if(inputs, is_unknown)->first));
  }
  std::size_t count = 0;
  for (const auto& value : values)
    if (value) count += element_count(shape_of<T>(*value));
  const std::size_t most = std::max(detail::always_allowed, count * results_per_element);
  std::vector<const Value<T>*> given;
  for (const detail::Step<T>& step : program.steps) {
    given.clear();
    for (const std::size_t slot : step.inputs) given.push_back(slot == no_slot ? nullptr : &*values[slot]);
    try {
      std::vector<Value<T>> results = step.compute({given, most});
      if (results.size() < step.outputs.size())
        fail<ValueError>("there are ", results.size(), " results, the graph asks for ", step.outputs.size());
      for (std::size_t i = 0; i < step.outputs.size(); ++i) {
        if (step.outputs[i] == no_slot) continue;
        count += element_count(shape_of<T>(results[i]));
        values[step.outputs[i]] = std::move(results[i]);
      }
      if (count > most) fail<ValueError>("all values together would have more than ", most, " elements");
    } catch (const std::length_error&) {
      fail<ValueError>(step.name, ": its result does not fit into memory");
    } catch (const std::logic_error&) {
      rethrow_with(step.name);
    } catch (const std::bad_alloc&) {
      fail<ValueError>(step.name, ": its result does not fit into memory");
    }
    for (const std::size_t slot : step.done) {
      count -= element_count(shape_of<T>(*values[slot]));
      values[slot].reset();
    }
  }
  Values<T> outputs;
  for (std::size_t i = 0; i < program.outputs.size(); ++i)
    outputs.emplace(program.outputs[i].name, *values[program.output_slots[i]]);
  return outputs;
}

template class Graph<float>;
template class Graph<double>;

}  // namespace xgrad::onnx
