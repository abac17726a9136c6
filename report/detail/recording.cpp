#include "recording.hpp"

#include <algorithm>
#include <map>
#include <type_traits>
#include <variant>

#include "../../graph/error.hpp"
#include "../../graph/watch.hpp"
#include "array_json.hpp"

namespace xgrad::detail {
namespace {

nlohmann::json json_of(const Attribute::Value& value) {
  return std::visit(
      [](const auto& held) -> nlohmann::json {
        if constexpr (std::is_pointer_v<std::remove_cvref_t<decltype(held)>>) {
          return array_json(*held);
        } else {
          return held;
        }
      },
      value);
}

template <class T>
class Recorder : public Watcher {
 public:
  explicit Recorder(const std::vector<NamedParameter<T>>& parameters) {
    for (const auto& [name, parameter] : parameters)
      add({RecordedValue<T>::Kind::parameter, name, {}, {}, {}, parameter, {}});
  }

  using Watcher::on_op;
  void on_op(const OpEvent<T>& event) override {
    if (event.in_backward) return;
    RecordedValue<T> value{RecordedValue<T>::Kind::op, event.op,     {}, {},
                           nlohmann::json::object(),   event.result, {}};
    for (const Variable<T>* input : event.inputs) value.inputs.push_back(id_of(*input));
    for (const Attribute& attribute : event.attributes)
      value.attributes[attribute.name] = json_of(attribute.value);
    if (event.module != nullptr) value.module = event.module->name;
    for (const RunningModule* module = event.module; module != nullptr; module = module->outer)
      graph_.modules[module->name] = module->type;
    add(std::move(value));
  }

  std::optional<std::size_t> find(const Variable<T>& variable) const {
    const auto found = ids_.find(key_of(variable));
    return found == ids_.end() ? std::nullopt : std::optional(found->second);
  }

  RecordedGraph<T> take() { return std::move(graph_); }

 private:
  /// A variable that was cut off from its graph has the same value, but no node.
  using Key = std::pair<const void*, const void*>;

  static Key key_of(const Variable<T>& variable) {
    return {Access<T>::value(variable).get(), Access<T>::node(variable).get()};
  }

  void add(RecordedValue<T> value) {
    ids_[key_of(value.variable)] = graph_.values.size();
    graph_.values.push_back(std::move(value));
  }

  std::optional<std::size_t> id_of(const Variable<T>& variable) {
    if (!variable.defined()) return std::nullopt;
    if (!find(variable)) add({RecordedValue<T>::Kind::constant, "", {}, {}, {}, variable, {}});
    return find(variable);
  }

  std::map<Key, std::size_t> ids_;
  RecordedGraph<T> graph_;
};

/// Leaves out the parameters that nothing uses: those of other models, and of heads that did not run.
template <class T>
void drop_unused(RecordedGraph<T>& graph) {
  std::vector<bool> used(graph.values.size());
  used[graph.loss] = true;
  for (const RecordedValue<T>& value : graph.values) {
    if (value.kind == RecordedValue<T>::Kind::op)
      used[static_cast<std::size_t>(&value - graph.values.data())] = true;
    for (const auto& input : value.inputs) {
      if (input) used[*input] = true;
    }
  }
  std::vector<std::size_t> places(used.size());
  std::size_t count = 0;
  for (std::size_t id = 0; id < used.size(); ++id) {
    places[id] = count;
    if (!used[id]) continue;
    if (count != id) graph.values[count] = std::move(graph.values[id]);
    ++count;
  }
  graph.values.resize(count);
  for (RecordedValue<T>& value : graph.values) {
    for (auto& input : value.inputs) {
      if (input) input = places[*input];
    }
  }
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
  const std::vector<Variable<T>> gradients = grad(loss, wanted, {.allow_unused = true});
  for (std::size_t i = 0; i < owners.size(); ++i) owners[i]->gradient = gradients[i];
}

}  // namespace

template <class T>
RecordedGraph<T> record_graph(const std::function<Variable<T>()>& loss,
                              const std::vector<NamedParameter<T>>& parameters) {
  RecordedGraph<T> graph;
  {
    Recorder<T> recorder(parameters);
    const EnableGrad enable;
    const SingleOps single;
    const Variable<T> result = loss();
    if (result.size() != 1) fail<ShapeError>("Report: the loss must be a scalar, got ", result.shape());
    const std::optional<std::size_t> id = recorder.find(result);
    if (!id)
      fail<GraphError>("Report: the loss must be computed by ops while it is asked for, got another one");
    graph = recorder.take();
    graph.loss = *id;
  }
  drop_unused(graph);
  add_gradients(graph);
  return graph;
}

template RecordedGraph<float> record_graph(const std::function<Variable<float>()>&,
                                           const std::vector<NamedParameter<float>>&);
template RecordedGraph<double> record_graph(const std::function<Variable<double>()>&,
                                            const std::vector<NamedParameter<double>>&);

}  // namespace xgrad::detail
