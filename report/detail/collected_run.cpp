#include "collected_run.hpp"

#include <algorithm>
#include <cmath>
#include <functional>
#include <iterator>
#include <limits>
#include <optional>
#include <span>
#include <type_traits>
#include <utility>

#include "array_json.hpp"
#include "statistics.hpp"

namespace xgrad::detail {
namespace {

using Json = JsonTree;

/// Adds to a list of an object. What push_back() makes of null would be destroyed as a list even where there
/// was no memory for one.
void append(Json& object, const char* name, Json item) {
  auto list = object.find(name);
  if (list == object.end()) list = object.emplace(name, Json::array()).first;
  list->push_back(std::move(item));
}

/// json_of(entry) by notch, null where there is none.
template <class V, class F>
Json by_notch(const std::set<std::size_t>& steps, const ByStep<V>& entries, const F& json_of) {
  Json list = Json::array();
  for (const std::size_t step : steps) {
    const auto found = entries.find(step);
    list.push_back(found == entries.end() ? Json() : json_of(found->second));
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

constexpr std::size_t max_bytes = 8'000'000;

/// How much of a run is written.
struct Detail {
  static constexpr std::size_t all = std::numeric_limits<std::size_t>::max();

  std::size_t curve_points = all;   // of a curve
  std::size_t largest_value = all;  // elements of a value that is no operand of attention
  bool exact = true, all_steps = true, values = true, early_values = true;
  std::size_t every_layer = 1;
};

/// Makes JSON of arrays, or only adds up how long it would be.
class ArrayWriter {
 public:
  explicit ArrayWriter(bool counts_only) : counts_only_(counts_only) {}

  Json operator()(const AnyArray& array, bool exact = true) {
    return std::visit(
        [&]<class A>(const A& held) -> Json {
          if constexpr (std::is_same_v<A, std::monostate>) {
            return {};
          } else if (counts_only_) {
            const std::size_t bytes = exact ? sizeof(typename A::value_type) : sizeof(std::uint16_t);
            length_ += (held.size() * bytes + 2) / 3 * 4 + around_an_array;
            return {};
          } else {
            const auto is_finite = [](auto x) { return std::isfinite(x); };
            return exact || !std::all_of(held.begin(), held.end(), is_finite) ? array_json(held)
                                                                              : rounded_json(held);
          }
        },
        array);
  }

  std::size_t length() const { return length_; }

 private:
  static constexpr std::size_t around_an_array = 100;  // shape, dtype, range

  bool counts_only_;
  std::size_t length_ = 0;
};

/// None if no report has room for it.
template <class T>
AnyArray value_of(const Variable<T>& variable) {
  if (!variable.defined() || variable.size() * sizeof(T) * 4 / 3 > max_bytes) return {};
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

std::size_t size_of(const AnyArray& array) {
  return std::visit(
      []<class A>(const A& held) -> std::size_t {
        if constexpr (std::is_same_v<A, std::monostate>) {
          return 0;
        } else {
          return held.size();
        }
      },
      array);
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

/// 1 where a mask has made scores -inf, or filled in another number; (L, S) if that is the same for all
/// heads, null if it is nowhere.
template <class T>
Json masked_json(const RecordedValue<T>& scores, std::size_t row, const AttentionShape& shape) {
  Mask masked = Mask::from_shape(shape.of_row());
  const T* const first = scores.variable.value().data() + row * masked.size();
  const Json fill = scores.name == "masked_fill" ? scores.attributes.value("value", Json()) : Json();
  const T hidden = fill.is_number() ? fill.get<T>() : -std::numeric_limits<T>::infinity();
  std::transform(first, first + masked.size(), masked.data(), [=](T score) { return score == hidden; });
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
  for (const auto& input : value.inputs) append(all, "inputs", input ? Json(*input) : Json());
  return all;
}

template <class R>
std::size_t place(std::vector<R>& list, const Json& head) {
  const auto found =
      std::find_if(list.begin(), list.end(), [&](const R& record) { return record.head == head; });
  if (found != list.end()) return static_cast<std::size_t>(found - list.begin());
  list.emplace_back().head = head;
  return list.size() - 1;
}

/// Evenly spaced points, and the last one.
template <class T>
std::vector<T> thinned(const std::vector<T>& points, std::size_t most) {
  if (points.size() <= most) return points;
  const std::size_t stride = (points.size() + most - 1) / most;
  std::vector<T> kept;
  for (std::size_t i = 0; i < points.size(); i += stride) kept.push_back(points[i]);
  if ((points.size() - 1) % stride != 0) kept.push_back(points.back());
  return kept;
}

Json curve_json(const std::string& name, const Curve& curve, const Detail& detail, ArrayWriter& write) {
  const std::vector<std::int64_t> steps = thinned(curve.steps, detail.curve_points);
  const std::vector<double> values = thinned(curve.values, detail.curve_points);
  Json one{{"name", name}, {"values", write(array_of<double>(std::span(values)))}};
  const auto follows = [](std::int64_t a, std::int64_t b) { return b != a + 1; };
  if (std::adjacent_find(steps.begin(), steps.end(), follows) == steps.end()) {
    one["first"] = steps.front();
  } else {
    one["steps"] = array_json(array_of<std::int64_t>(std::span(steps)));
  }
  return one;
}

Json graph_json(const GraphRecord& graph, const std::set<std::size_t>& steps, const Detail& detail,
                ArrayWriter& write) {
  Json one = graph.head;
  const auto& last = graph.snapshots.rbegin()->second;
  const auto json_of = [&](const std::vector<ValueSnapshot>& values) {
    Json all{{"value", list_json(values, std::mem_fn(&ValueSnapshot::statistics))},
             {"gradient", list_json(values, std::mem_fn(&ValueSnapshot::gradient_statistics))}};
    if (!detail.values || (&values != &last && (!detail.early_values || graph.values.empty()))) return all;
    const auto shown = [&](const AnyArray& array, std::size_t id, const std::set<std::size_t>& of_attention) {
      return size_of(array) <= detail.largest_value || of_attention.contains(id) ? write(array) : Json();
    };
    for (std::size_t id = 0; id < values.size(); ++id) {
      append(all, "values", shown(values[id].value, id, graph.values));
      append(all, "gradients", shown(values[id].gradient, id, graph.gradients));
    }
    return all;
  };
  one["snapshots"] = by_notch(steps, graph.snapshots, json_of);
  return one;
}

/// Whether a record is of a layer that is shown: of each that is, all rows are.
std::vector<bool> shown_layers(const std::vector<AttentionRecord>& attention, std::size_t every) {
  std::vector<bool> shown;
  std::set<std::pair<std::size_t, std::size_t>> layers;
  for (const AttentionRecord& record : attention) {
    layers.emplace(record.head["graph"], record.head["value"]);
    shown.push_back((layers.size() - 1) % every == 0);
  }
  return shown;
}

Json json_of(const CollectedRun& collected, const Detail& detail, ArrayWriter& write) {
  const std::set<std::size_t>& steps = collected.steps;
  Json result = collected.run;
  result["steps"] = steps;
  result["notes"] = collected.notes;
  for (const auto& [name, curve] : collected.curves)
    append(result, "curves", curve_json(name, curve, detail, write));
  for (const auto& [name, histograms] : collected.parameters) {
    append(result, "parameters",
           {{"name", name},
            {"shape", histograms.shape},
            {"snapshots", by_notch(steps, histograms.snapshots, std::identity())}});
  }
  const std::vector<bool> shown = shown_layers(collected.attention, detail.every_layer);
  for (std::size_t i = 0; i < shown.size(); ++i) {
    if (!shown[i]) continue;
    const AttentionRecord& record = collected.attention[i];
    Json one = record.head;
    if (!record.masked.is_null()) one["masked"] = record.masked;
    const AttentionSnapshot& last = record.snapshots.rbegin()->second;
    one["snapshots"] = by_notch(steps, record.snapshots, [&](const AttentionSnapshot& snapshot) -> Json {
      if (!detail.all_steps && &snapshot != &last) return {};
      return {{"weights", write(snapshot.weights, detail.exact)},
              {"gradient", write(snapshot.gradient, detail.exact)}};
    });
    append(result, "attention", std::move(one));
  }
  for (const auto& [head, snapshots] : collected.predictions) {
    Json one = head;
    one["snapshots"] = by_notch(steps, snapshots, std::identity());
    append(result, "predictions", std::move(one));
  }
  for (const GraphRecord& graph : collected.graphs)
    append(result, "graphs", graph_json(graph, steps, detail, write));
  for (const auto& [number, list] : collected.tensors) {
    for (const Json& tensor : list) append(result, "tensors", tensor);
  }
  return {{"format", "xgrad-report"}, {"version", 1}, {"runs", {std::move(result)}}};
}

std::string text_of(const Json& data) { return data.dump(-1, ' ', false, Json::error_handler_t::replace); }

std::size_t length_of(const CollectedRun& collected, const Detail& detail) {
  ArrayWriter counts(true);
  Json all = json_of(collected, detail, counts);
  return text_of(all).size() + counts.length();
}

/// As much as a report has room for.
Detail fitting(const CollectedRun& collected) {
  Detail detail;
  std::size_t length = length_of(collected, detail);
  const auto reduce = [&](auto Detail::*part, auto less) {
    if (length <= max_bytes) return;
    const auto before = std::exchange(detail.*part, less);
    const std::size_t shorter = length_of(collected, detail);
    if (shorter < length) {
      length = shorter;
    } else {
      detail.*part = before;  // there was nothing of the kind
    }
  };
  reduce(&Detail::curve_points, 20'000);
  reduce(&Detail::largest_value, 1'000'000);
  reduce(&Detail::largest_value, 100'000);
  reduce(&Detail::early_values, false);
  reduce(&Detail::exact, false);
  reduce(&Detail::largest_value, 10'000);
  reduce(&Detail::largest_value, 1'000);
  reduce(&Detail::all_steps, false);
  reduce(&Detail::values, false);
  for (std::size_t every = 2; every <= collected.attention.size(); every *= 2)
    reduce(&Detail::every_layer, every);
  return detail;
}

/// What a report says of what is left out; nothing if all is there.
std::string note_of(const Detail& detail) {
  std::vector<std::string> left_out;
  if (detail.curve_points != Detail::all)
    left_out.push_back("curves have " + std::to_string(detail.curve_points) + " points");
  if (!detail.exact) left_out.emplace_back("attention weights are rounded to 16 bits");
  if (!detail.values) {
    left_out.emplace_back("the graph shows no single values");
  } else {
    if (detail.largest_value != Detail::all)
      left_out.push_back("values of more than " + std::to_string(detail.largest_value) +
                         " numbers are not shown");
    if (!detail.early_values) left_out.emplace_back("the formulas of attention are of the last step alone");
  }
  if (!detail.all_steps) left_out.emplace_back("attention is shown at the last step alone");
  if (detail.every_layer > 1)
    left_out.push_back("attention is shown of one in " + std::to_string(detail.every_layer) + " layers");
  std::string note;
  for (const std::string& what : left_out) note += (note.empty() ? "To keep the file small, " : ", ") + what;
  return note.empty() ? note : note + ".";
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
    const auto& inputs = all[id].inputs;
    if (std::find(inputs.begin(), inputs.end(), std::optional(weights)) == inputs.end()) continue;
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
  Json head{{"name", name},
            {"loss", graph.loss},
            {"modules", graph.modules},
            {"operands", graph.operands},
            {"formulas", graph.formulas}};
  std::vector<ValueSnapshot> snapshot;
  for (const RecordedValue<T>& value : graph.values) {
    append(head, "values", value_json(value));
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
      const Json head{
          {"module", value.module.value_or("")},
          {"example", shape->rows == 1 ? example.text : example.text + ", " + std::to_string(row + 1)},
          {"queries", tokens},
          {"keys", tokens},
          {"heads", shape->heads},
          {"graph", place_of_graph},
          {"value", id},
          {"row", row}};
      AttentionRecord& record = attention[place(attention, head)];
      record.masked = masked_json(graph.values[value.inputs.front().value()], row, *shape);
      record.snapshots[step] = {heads_of(value.variable, row, shape->of_row()),
                                heads_of(value.gradient, row, shape->of_row())};
    }
  }
}

std::string CollectedRun::json() const {
  const Detail detail = fitting(*this);
  ArrayWriter write(false);
  Json all = json_of(*this, detail, write);
  if (const std::string note = note_of(detail); !note.empty()) all["runs"][0]["notes"].push_back(note);
  return text_of(all);
}

#define XGRAD_INSTANTIATE(T)                                                                              \
  template std::size_t CollectedRun::add_graph(const std::string&, const RecordedGraph<T>&, std::size_t); \
  template void CollectedRun::add_attention(const ReportExample&, const RecordedGraph<T>&, std::size_t,   \
                                            std::size_t);

XGRAD_INSTANTIATE(float)
XGRAD_INSTANTIATE(double)

}  // namespace xgrad::detail
