#include "collected_run.hpp"

#include <algorithm>
#include <cmath>
#include <functional>
#include <iterator>
#include <optional>
#include <span>
#include <type_traits>

#include "array_json.hpp"
#include "statistics.hpp"

namespace xgrad::detail {
namespace {

using Json = nlohmann::json;

/// The entries by notch, null where there is none: json_of(entry), or json_of(entry, step).
template <class V, class F>
Json by_notch(const std::set<std::size_t>& steps, const ByStep<V>& entries, const F& json_of) {
  Json list = Json::array();
  for (const std::size_t step : steps) {
    const auto found = entries.find(step);
    if (found == entries.end()) {
      list.push_back(nullptr);
    } else if constexpr (std::is_invocable_v<F, V, std::size_t>) {
      list.push_back(json_of(found->second, step));
    } else {
      list.push_back(json_of(found->second));
    }
  }
  return list;
}

/// f(element) of all.
template <class E, class F>
Json list_json(const std::vector<E>& elements, const F& f) {
  Json list = Json::array();
  for (const E& element : elements) list.push_back(f(element));
  return list;
}

/// How much of a run is written.
struct Detail {
  bool exact = true, all_steps = true, values = true, early_values = true;
  std::size_t every_layer = 1;
};

Json any_json(const AnyArray& array, bool exact) {
  return std::visit(
      [exact]<class A>(const A& held) -> Json {
        if constexpr (std::is_same_v<A, std::monostate>) {
          return {};
        } else if constexpr (std::is_same_v<A, Array<float>>) {
          const bool finite = std::all_of(held.begin(), held.end(), [](float x) { return std::isfinite(x); });
          return exact || !finite ? array_json(held) : rounded_json(held);
        } else {
          return array_json(held);
        }
      },
      array);
}

template <class T>
AnyArray value_of(const Variable<T>& variable) {
  if (!variable.defined()) return {};
  return variable.value();
}

/// Row `row` of the first axis, or all if there is but one, as (heads, L, S).
template <class T>
AnyArray heads_of(const Variable<T>& x, std::size_t row, const Shape& shape) {
  if (!x.defined()) return {};
  Array<T> heads(shape);
  std::copy_n(x.value().data() + row * heads.size(), heads.size(), heads.data());
  return heads;
}

template <class T>
Json statistics_of(const Variable<T>& x) {
  return x.defined() ? statistics_json(x.value()) : Json();
}

/// Where a softmax is attention: (batch, heads, L, S), (batch, L, S) or (L, S) of as many tokens.
struct AttentionShape {
  std::size_t rows, heads, length;

  static std::optional<AttentionShape> of(const Shape& shape, const ReportExample& example) {
    std::size_t longest = 0;
    for (const auto& tokens : example.tokens) longest = std::max(longest, tokens.size());
    const std::size_t rank = shape.size();
    if (rank < 2 || rank > 4 || shape[rank - 1] != shape[rank - 2] || shape[rank - 1] < longest) return {};
    const AttentionShape found{rank > 2 ? shape[0] : 1, rank > 3 ? shape[1] : 1, shape[rank - 1]};
    return found.rows == example.tokens.size() ? std::optional(found) : std::nullopt;
  }

  Shape of_row() const { return {heads, length, length}; }
};

/// 1 where a mask has made scores -inf or, as some write it, -1e9; (L, S) if that is the same for all heads,
/// null if it is nowhere.
template <class T>
Json masked_json(const Variable<T>& scores, std::size_t row, const AttentionShape& shape) {
  Mask masked = Mask::from_shape(shape.of_row());
  const T* const first = scores.value().data() + row * masked.size();
  std::transform(first, first + masked.size(), masked.data(), [](T score) { return score <= T(-1e8); });
  if (std::none_of(masked.begin(), masked.end(), [](bool hidden) { return hidden; })) return {};
  const std::size_t size = shape.length * shape.length;
  for (std::size_t head = 1; head < shape.heads; ++head) {
    if (!std::equal(masked.data(), masked.data() + size, masked.data() + head * size))
      return array_json(masked);
  }
  Mask one = Mask::from_shape({shape.length, shape.length});
  std::copy_n(masked.data(), size, one.data());
  return array_json(one);
}

template <class T>
Json value_json(const RecordedValue<T>& value) {
  using Kind = typename RecordedValue<T>::Kind;
  Json all{{"kind", value.kind == Kind::op          ? "op"
                    : value.kind == Kind::parameter ? "parameter"
                                                    : "constant"},
           {"name", value.name},
           {"shape", shape_json(value.variable.shape())}};
  if (value.kind != Kind::op) return all;
  all["attributes"] = value.attributes;
  if (value.module) all["module"] = *value.module;
  for (const auto& input : value.inputs) all["inputs"].push_back(input ? Json(*input) : Json());
  return all;
}

template <class R>
std::size_t place(std::vector<R>& list, const Json& head) {
  const auto found = std::ranges::find(list, head, &R::head);
  if (found != list.end()) return static_cast<std::size_t>(found - list.begin());
  list.emplace_back().head = head;
  return list.size() - 1;
}

constexpr std::size_t max_bytes = 8'000'000;

Json json_of(const CollectedRun& collected, const Detail& detail) {
  const std::set<std::size_t>& steps = collected.steps;
  Json result = collected.run;
  result["steps"] = steps;
  result["notes"] = collected.notes;
  for (const auto& [name, curve] : collected.curves) {
    Json one{{"name", name},
             {"values", array_json(array_of<double>(std::span(std::as_const(curve.values))))}};
    const auto follows = [](std::int64_t a, std::int64_t b) { return b != a + 1; };
    if (std::ranges::adjacent_find(curve.steps, follows) == curve.steps.end()) {
      one["first"] = curve.steps.front();
    } else {
      one["steps"] = array_json(array_of<std::int64_t>(std::span(curve.steps)));
    }
    result["curves"].push_back(std::move(one));
  }
  for (const auto& [name, histograms] : collected.parameters) {
    result["parameters"].push_back({{"name", name},
                                    {"shape", histograms.shape},
                                    {"snapshots", by_notch(steps, histograms.snapshots,
                                                           [](const Json& snapshot) { return snapshot; })}});
  }
  for (std::size_t i = 0; i < collected.attention.size(); i += detail.every_layer) {
    Json one = collected.attention[i].head;
    ByStep<AttentionSnapshot> shown = collected.attention[i].snapshots;
    if (!detail.all_steps) shown.erase(shown.begin(), std::prev(shown.end()));
    one["snapshots"] = by_notch(steps, shown, [&](const AttentionSnapshot& snapshot) {
      return Json{{"weights", any_json(snapshot.weights, detail.exact)},
                  {"gradient", any_json(snapshot.gradient, detail.exact)}};
    });
    result["attention"].push_back(std::move(one));
  }
  for (const auto& [head, snapshots] : collected.predictions) {
    Json one = head;
    one["snapshots"] = by_notch(steps, snapshots, [](const Json& snapshot) { return snapshot; });
    result["predictions"].push_back(std::move(one));
  }
  for (const GraphRecord& graph : collected.graphs) {
    Json one = graph.head;
    const std::size_t last = graph.snapshots.rbegin()->first;
    const auto json_of = [&](const std::vector<ValueSnapshot>& values, std::size_t step) {
      Json all{{"value", list_json(values, std::mem_fn(&ValueSnapshot::statistics))},
               {"gradient", list_json(values, std::mem_fn(&ValueSnapshot::gradient_statistics))}};
      if (detail.values && (step == last || (detail.early_values && !graph.values.empty()))) {
        all["values"] = list_json(values, [](const auto& one) { return any_json(one.value, true); });
        all["gradients"] = list_json(values, [](const auto& one) { return any_json(one.gradient, true); });
      }
      return all;
    };
    one["snapshots"] = by_notch(steps, graph.snapshots, json_of);
    result["graphs"].push_back(std::move(one));
  }
  for (const auto& [number, list] : collected.tensors) {
    for (const Json& tensor : list) result["tensors"].push_back(tensor);
  }
  return {{"format", "xgrad-report"}, {"version", 1}, {"runs", {std::move(result)}}};
}

}  // namespace

template <class T>
void GraphRecord::keep_at_all_steps(const std::vector<RecordedValue<T>>& all, std::size_t weights) {
  const auto keep_inputs = [this](const RecordedValue<T>& value) {
    for (const auto& input : value.inputs) {
      if (input) values.insert(*input);
    }
  };
  values.insert(weights);
  gradients.insert(weights);
  keep_inputs(all[weights]);
  for (std::size_t id = weights + 1; id < all.size(); ++id) {
    if (std::ranges::find(all[id].inputs, std::optional(weights)) == all[id].inputs.end()) continue;
    gradients.insert(id);
    keep_inputs(all[id]);
  }
}

void GraphRecord::drop_early_arrays() {
  for (auto early = snapshots.begin(); std::next(early) != snapshots.end(); ++early) {
    for (std::size_t id = 0; id < early->second.size(); ++id) {
      if (!values.contains(id)) early->second[id].value = {};
      if (!gradients.contains(id)) early->second[id].gradient = {};
    }
  }
}

template <class T>
std::size_t CollectedRun::add_graph(const std::string& name, const RecordedGraph<T>& graph,
                                    std::size_t step) {
  Json head{{"name", name}, {"loss", graph.loss}, {"modules", graph.modules}};
  std::vector<ValueSnapshot> snapshot;
  for (const RecordedValue<T>& value : graph.values) {
    head["values"].push_back(value_json(value));
    snapshot.push_back({statistics_of(value.variable), statistics_of(value.gradient),
                        value_of(value.variable), value_of(value.gradient)});
  }
  const std::size_t found = place(graphs, head);
  GraphRecord& graph_record = graphs[found];
  graph_record.snapshots[step] = std::move(snapshot);
  graph_record.drop_early_arrays();
  return found;
}

template <class T>
void CollectedRun::add_attention(const ReportExample& example, const RecordedGraph<T>& graph,
                                 std::size_t place_of_graph, std::size_t step) {
  for (std::size_t id = 0; id < graph.values.size(); ++id) {
    const RecordedValue<T>& value = graph.values[id];
    const auto shape = AttentionShape::of(value.variable.shape(), example);
    const bool counts = value.gradient.defined() || !graph.values[graph.loss].variable.requires_grad();
    if (value.name != "softmax" || !shape || !counts) continue;
    graphs[place_of_graph].keep_at_all_steps(graph.values, id);
    for (std::size_t row = 0; row < shape->rows; ++row) {
      std::vector<std::string> tokens = example.tokens[row];
      tokens.resize(shape->length, "[pad]");
      Json head{{"module", value.module.value_or("")},
                {"example", shape->rows == 1 ? example.text : example.text + ", " + std::to_string(row + 1)},
                {"queries", tokens},
                {"keys", tokens},
                {"heads", shape->heads},
                {"graph", place_of_graph},
                {"value", id},
                {"row", row}};
      const Json masked = masked_json(graph.values[value.inputs.front().value()].variable, row, *shape);
      if (!masked.is_null()) head["masked"] = masked;
      attention[place(attention, head)].snapshots[step] = {heads_of(value.variable, row, shape->of_row()),
                                                           heads_of(value.gradient, row, shape->of_row())};
    }
  }
}

std::string CollectedRun::json() const {
  const auto text = [this](const Detail& detail, const std::string& left_out) {
    Json all = json_of(*this, detail);
    if (!left_out.empty()) all["runs"][0]["notes"].push_back(left_out);
    return all.dump(-1, ' ', false, Json::error_handler_t::replace);
  };
  Detail detail;
  std::string left_out, all = text(detail, left_out);
  const auto leave_out = [&](bool& kept, const char* what) {
    if (all.size() <= max_bytes) return;
    kept = false;
    const std::string less = text(detail, left_out);
    if (less.size() >= all.size()) return;  // there was nothing of the kind
    left_out += (left_out.empty() ? "To keep the file small, " : ", ") + std::string(what);
    all = text(detail, left_out + ".");
  };
  leave_out(detail.early_values, "the formulas of attention are of the last step alone");
  leave_out(detail.exact, "attention weights are rounded to 16 bits");
  leave_out(detail.values, "the graph shows no single values");
  leave_out(detail.all_steps, "attention is shown at the last step alone");
  while (all.size() > max_bytes && detail.every_layer < attention.size()) {
    detail.every_layer *= 2;
    all = text(detail, left_out + ", and of one in " + std::to_string(detail.every_layer) + " layers.");
  }
  return all;
}

#define XGRAD_INSTANTIATE(T)                                                                              \
  template std::size_t CollectedRun::add_graph(const std::string&, const RecordedGraph<T>&, std::size_t); \
  template void CollectedRun::add_attention(const ReportExample&, const RecordedGraph<T>&, std::size_t,   \
                                            std::size_t);

XGRAD_INSTANTIATE(float)
XGRAD_INSTANTIATE(double)

}  // namespace xgrad::detail
