#include "recording.hpp"

#include <cmath>
#include <type_traits>
#include <variant>

#include "../../base/error.hpp"
#include "array_json.hpp"

namespace xgrad::detail {
namespace {

/// A formula needs the number even if it is none of JSON: masks write -inf.
nlohmann::json attribute_json(double number) {
  if (std::isfinite(number)) return number;
  return std::isnan(number) ? "nan" : number > 0 ? "inf" : "-inf";
}

nlohmann::json json_of(const Attribute::Value& value) {
  return std::visit(
      [](const auto& held) -> nlohmann::json {
        using V = std::remove_cvref_t<decltype(held)>;
        if constexpr (std::is_pointer_v<V>) {
          return array_json(*held);
        } else if constexpr (std::is_same_v<V, double>) {
          return attribute_json(held);
        } else if constexpr (std::is_same_v<V, std::vector<double>>) {
          nlohmann::json list = nlohmann::json::array();
          for (const double number : held) list.push_back(attribute_json(number));
          return list;
        } else {
          return held;
        }
      },
      value);
}

/// Leaves out all that those with a mark were not computed from.
template <class T>
void keep_ancestors(RecordedGraph<T>& graph, std::vector<bool> kept) {
  for (std::size_t id = kept.size(); id-- > 0;) {
    if (!kept[id]) continue;
    for (const auto& input : graph.values[id].inputs) {
      if (input) kept[*input] = true;
    }
  }
  std::vector<std::size_t> places(kept.size());
  std::vector<RecordedValue<T>> values;
  for (std::size_t id = 0; id < kept.size(); ++id) {
    places[id] = values.size();
    if (!kept[id]) continue;
    RecordedValue<T>& value = values.emplace_back(std::move(graph.values[id]));
    for (auto& input : value.inputs) {
      if (input) input = places[*input];
    }
  }
  graph.values = std::move(values);
  graph.loss = places[graph.loss];
}

template <class T>
void add_gradients(RecordedGraph<T>& graph) {
  const Variable<T> loss = graph.values[graph.loss].variable;
  if (!loss.requires_grad()) return;
  std::vector<Variable<T>> wanted;
  std::vector<RecordedValue<T>*> owners;
  for (RecordedValue<T>& value : graph.values) {
    if (!value.variable.requires_grad()) continue;
    wanted.push_back(value.variable);
    owners.push_back(&value);
  }
  const std::vector<Variable<T>> gradients = grad(loss, wanted, {.retain_graph = true, .allow_unused = true});
  for (std::size_t i = 0; i < owners.size(); ++i) owners[i]->gradient = gradients[i];
}

}  // namespace

template <class T>
void Recorder<T>::on_op(const OpEvent<T>& event) {
  if (event.in_backward) return;
  RecordedValue<T> value{RecordedValue<T>::Kind::op, event.op.name, {}, {},
                         nlohmann::json::object(),   event.result,  {}};
  for (const Variable<T>* input : event.inputs) value.inputs.push_back(id_of(*input));
  for (const Attribute& attribute : event.attributes)
    value.attributes[attribute.name] = json_of(attribute.value);
  graph_.operands.try_emplace(event.op.name, event.op.inputs.begin(), event.op.inputs.end());
  if (event.module != nullptr) value.module = event.module->name;
  for (const RunningModule* module = event.module; module != nullptr; module = module->outer)
    graph_.modules[module->name] = module->type;
  add(std::move(value));
}

template <class T>
RecordedGraph<T> Recorder<T>::graph_of(const Variable<T>& loss, const std::vector<NamedParameter<T>>& names,
                                       const std::vector<Variable<T>>& shown) const {
  if (loss.size() != 1) fail<ShapeError>("Report: the loss must be a scalar, got ", loss.shape());
  const std::optional<std::size_t> place = find(loss);
  if (!place)
    fail<GraphError>("Report: the loss must be computed by ops while it is watched, got another one");
  RecordedGraph<T> graph = graph_;
  graph.loss = *place;
  for (const auto& [name, parameter] : names) {
    const auto id = find(parameter);
    if (!id || graph.values[*id].kind == RecordedValue<T>::Kind::op) continue;
    graph.values[*id].kind = RecordedValue<T>::Kind::parameter;
    graph.values[*id].name = name;
  }
  std::vector<bool> kept(graph.values.size());
  kept[*place] = true;
  for (const Variable<T>& variable : shown) {
    if (const auto id = find(variable)) kept[*id] = true;
  }
  keep_ancestors(graph, std::move(kept));
  add_gradients(graph);
  return graph;
}

template <class T>
void Recorder<T>::add(RecordedValue<T> value) {
  ids_[key_of(value.variable)] = graph_.values.size();
  graph_.values.push_back(std::move(value));
}

template <class T>
std::optional<std::size_t> Recorder<T>::find(const Variable<T>& variable) const {
  const auto found = ids_.find(key_of(variable));
  return found == ids_.end() ? std::nullopt : std::optional(found->second);
}

template <class T>
std::optional<std::size_t> Recorder<T>::id_of(const Variable<T>& variable) {
  if (!variable.defined()) return std::nullopt;
  if (!find(variable)) add({RecordedValue<T>::Kind::constant, "", {}, {}, {}, variable, {}});
  return find(variable);
}

template class Recorder<float>;
template class Recorder<double>;

}  // namespace xgrad::detail
