#include "graph.hpp"

#include <algorithm>
#include <set>
#include <stdexcept>
#include <utility>

#include "../base/detail/text/json_text.hpp"
#include "detail/operators/operators.hpp"
#include "detail/program.hpp"
#include "detail/restored_matrices.hpp"
#include "detail/types.hpp"

namespace xgrad::onnx {

using xgrad::detail::fail, xgrad::detail::in_quotes;

namespace {

/// The names of initializers that are nothing but running statistics, which training must not change.
std::set<std::string> running_statistics(const detail::Model& model) {
  std::set<std::string> statistics, others;
  for (const detail::Node& node : model.nodes) {
    for (std::size_t i = 0; i < node.inputs.size(); ++i)
      (node.op == "BatchNormalization" && i > 2 ? statistics : others).insert(node.inputs[i]);
  }
  for (const std::string& name : others) statistics.erase(name);
  return statistics;
}

/// The program of a model, whose errors begin with the path.
template <class T>
detail::Program<T> compiled_at(const std::string& path, const detail::Model& model) {
  try {
    return detail::compiled<T>(model);
  } catch (const std::invalid_argument& error) {
    throw FileError(path + ": " + error.what());
  } catch (const IndexError& error) {
    throw FileError(path + ": " + error.what());
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
Graph<T>::Graph(const std::string& name, const detail::Model& file) : Module<T>("onnx::Graph") {
  const detail::Model model = detail::restored_matrices(file);
  auto program = std::make_shared<detail::Program<T>>(
      xgrad::detail::read_unchanged(model, [&] { return compiled_at<T>(name, model); }));
  const std::size_t added = model.nodes.size() - file.nodes.size();
  if (added > 0 && (program->operators["Transpose"] -= added) == 0) program->operators.erase("Transpose");
  const std::set<std::string> statistics = running_statistics(model);
  for (auto& [slot, value] : program->constants) {
    const Variable<T>* floats = std::get_if<Variable<T>>(&value);
    if (floats == nullptr || floats->dimension() == 0) continue;
    const std::string& tensor = model.initializers[slot].view.name;
    value = statistics.contains(tensor) ? this->buffer(tensor, floats->value())
                                        : this->parameter(tensor, floats->value());
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
  std::vector<const Value<T>*> given;
  for (const ValueDescription& input : program.inputs) {
    const auto value = inputs.find(input.name);
    if (value == inputs.end()) fail<ValueError>("input ", in_quotes(input.name), " is missing");
    check_input<T>(input, value->second);
    given.push_back(&value->second);
  }
  if (inputs.size() > program.inputs.size()) {
    const auto is_unknown = [&](const auto& input) {
      return std::ranges::find(program.inputs, input.first, &ValueDescription::name) == program.inputs.end();
    };
    fail<ValueError>("there is no input ", in_quotes(std::ranges::find_if(inputs, is_unknown)->first));
  }
  std::vector<Value<T>> results = program.run(given, this->training());
  Values<T> outputs;
  for (std::size_t i = 0; i < program.outputs.size(); ++i)
    outputs.emplace(program.outputs[i].name, std::move(results[i]));
  return outputs;
}

Description describe(const std::string& path) {
  const detail::Model model = detail::read_model(path, detail::TensorData::description);
  Description description;
  description.has_doubles = detail::has_doubles(model);
  const auto described = [](const detail::ValueInfo& info) {
    ValueDescription value = detail::description_of(info);
    if (!info.is_tensor) value.type = "no tensor";
    return value;
  };
  const auto count = [&](const auto& self, const detail::Subgraph& graph) -> void {
    for (const detail::Node& node : graph.nodes) {
      ++description.operators[node.operator_name()];
      for (const detail::Attribute& attribute : node.attributes)
        if (attribute.graph != nullptr) self(self, *attribute.graph);
    }
  };
  count(count, model);
  std::set<std::string> initialized;
  for (const detail::Tensor& tensor : model.initializers) {
    initialized.insert(tensor.view.name);
    description.tensors.push_back(
        {tensor.view.name, detail::name_of_data_type(tensor.type), tensor.view.shape});
  }
  for (const detail::ValueInfo& input : model.inputs)
    if (!initialized.contains(input.name)) description.inputs.push_back(described(input));
  for (const detail::ValueInfo& output : model.outputs) description.outputs.push_back(described(output));
  return description;
}

template class Graph<float>;
template class Graph<double>;

}  // namespace xgrad::onnx
