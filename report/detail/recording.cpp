#include "recording.hpp"

#include <cmath>
#include <type_traits>
#include <utility>
#include <variant>

#include "../../base/error.hpp"
#include "array_json.hpp"
#include "formulas.hpp"

namespace xgrad::detail {
namespace {

/// A formula needs the number even if it is none of JSON: masks write -inf.
JsonTree attribute_json(double number) {
  if (std::isfinite(number)) return number;
  return std::isnan(number) ? "nan" : number > 0 ? "inf" : "-inf";
}

JsonTree json_of(const AttributeCopy& value) {
  return std::visit(
      []<class V>(const V& held) -> JsonTree {
        if constexpr (std::is_same_v<V, Ids> || std::is_same_v<V, Mask>) {
          return array_json(held);
        } else if constexpr (std::is_same_v<V, double>) {
          return attribute_json(held);
        } else if constexpr (std::is_same_v<V, std::vector<double>>) {
          JsonTree list = JsonTree::array();
          for (const double number : held) list.push_back(attribute_json(number));
          return list;
        } else {
          return held;
        }
      },
      value);
}

/// The values of a trace, inputs before results.
template <class T>
class Recorder {
 public:
  explicit Recorder(const std::vector<TracedOp<T>>& ops) {
    for (const TracedOp<T>& op : ops) add(op);
  }

  std::optional<std::size_t> find(const Variable<T>& variable) const {
    const auto found = ids_.find(key_of(variable));
    return found == ids_.end() ? std::nullopt : std::optional(found->second);
  }

  RecordedGraph<T> graph;

 private:
  /// A detached variable has the same value, but no node.
  using Key = std::pair<const void*, const void*>;

  static Key key_of(const Variable<T>& variable) {
    return {Access<T>::value(variable).get(), Access<T>::node(variable).get()};
  }

  void add(const TracedOp<T>& op) {
    RecordedValue<T> value{RecordedValue<T>::Kind::op, op.op->name, {}, {},
                           JsonTree::object(),         op.result,   {}};
    for (const Variable<T>& input : op.inputs) value.inputs.push_back(id_of(input));
    for (const auto& [name, attribute] : op.attributes) value.attributes[name] = json_of(attribute);
    if (graph.operands.try_emplace(op.op->name, op.op->inputs.begin(), op.op->inputs.end()).second) {
      if (const auto formula = formula_of(op.op->name)) graph.formulas.emplace(op.op->name, *formula);
    }
    if (!op.modules.empty()) value.module = op.modules.front().name;
    for (const TracedModule& module : op.modules) graph.modules[module.name] = module.type;
    add(std::move(value));
  }

  void add(RecordedValue<T> value) {
    ids_[key_of(value.variable)] = graph.values.size();
    graph.values.push_back(std::move(value));
  }

  std::optional<std::size_t> id_of(const Variable<T>& variable) {
    if (!variable.defined()) return std::nullopt;
    if (!find(variable)) add({RecordedValue<T>::Kind::constant, "", {}, {}, {}, variable, {}});
    return find(variable);
  }

  std::map<Key, std::size_t> ids_;
};

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
RecordedGraph<T> recorded_graph(const std::vector<TracedOp<T>>& ops, const Variable<T>& loss,
                                const std::vector<NamedParameter<T>>& names,
                                const std::vector<Variable<T>>& shown) {
  if (loss.size() != 1) fail<ShapeError>("Report: the loss must be a scalar, got ", loss.shape());
  Recorder<T> recorder(ops);
  const std::optional<std::size_t> place = recorder.find(loss);
  if (!place)
    fail<GraphError>("Report: the loss must be computed by the recorded ops, got a variable from elsewhere");
  RecordedGraph<T> graph = std::move(recorder.graph);
  graph.loss = *place;
  for (const auto& [name, leaf] : names) {
    const auto id = recorder.find(leaf);
    if (!id || graph.values[*id].kind == RecordedValue<T>::Kind::op) continue;
    if (Access<T>::node(leaf)) graph.values[*id].kind = RecordedValue<T>::Kind::parameter;
    graph.values[*id].name = name;
  }
  std::vector<bool> kept(graph.values.size());
  kept[*place] = true;
  for (const Variable<T>& variable : shown) {
    if (const auto id = recorder.find(variable)) kept[*id] = true;
  }
  keep_ancestors(graph, std::move(kept));
  add_gradients(graph);
  return graph;
}

#define XGRAD_INSTANTIATE(T)                                                                    \
  template RecordedGraph<T> recorded_graph(const std::vector<TracedOp<T>>&, const Variable<T>&, \
                                           const std::vector<NamedParameter<T>>&,               \
                                           const std::vector<Variable<T>>&);

XGRAD_INSTANTIATE(float)
XGRAD_INSTANTIATE(double)

}  // namespace xgrad::detail
