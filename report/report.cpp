#include "report.hpp"

#include <sys/resource.h>

#include <algorithm>
#include <atomic>
#include <cmath>
#include <cstdio>
#include <fstream>
#include <limits>
#include <numeric>
#include <set>
#include <span>
#include <type_traits>
#include <variant>

#include <nlohmann/json.hpp>

#include "../graph/error.hpp"
#include "../graph/random.hpp"
#include "../graph/threads.hpp"
#include "../kernels/gemm.hpp"
#include "../models/eval_mode.hpp"
#include "../train/file.hpp"
#include "detail/array_json.hpp"
#include "detail/page.hpp"
#include "detail/recording.hpp"
#include "detail/statistics.hpp"

namespace xgrad {
namespace {

using Json = nlohmann::json;
using AnyArray = std::variant<std::monostate, Array<float>, Array<double>>;

template <class V>
using ByStep = std::map<std::size_t, V>;

/// The entries by notch, null where there is none.
template <class V, class F>
Json by_notch(const std::set<std::size_t>& steps, const ByStep<V>& entries, const F& json_of) {
  Json list = Json::array();
  for (const std::size_t step : steps) {
    const auto found = entries.find(step);
    list.push_back(found == entries.end() ? Json() : json_of(found->second));
  }
  return list;
}

struct Curve {
  std::vector<std::int64_t> steps;
  std::vector<double> values;
};

struct AttentionSnapshot {
  AnyArray weights, gradient;
};

struct AttentionRecord {
  Json head;  // all but the snapshots
  ByStep<AttentionSnapshot> snapshots;
};

struct GraphSnapshot {
  Json statistics, gradient_statistics;
  std::vector<AnyArray> values, gradients;  // empty where there is no room for all
};

struct GraphRecord {
  Json head;
  ByStep<GraphSnapshot> snapshots;
};

/// Of a parameter.
struct Histograms {
  Json shape;
  ByStep<Json> snapshots;
};

/// How much of a run is written.
struct Detail {
  bool exact = true, all_steps = true, values = true;
  std::size_t every_layer = 1;
};

Json array_json(const AnyArray& array, bool exact) {
  return std::visit(
      [exact]<class A>(const A& held) -> Json {
        if constexpr (std::is_same_v<A, std::monostate>) {
          return {};
        } else if constexpr (std::is_same_v<A, Array<float>>) {
          const bool finite = std::all_of(held.begin(), held.end(), [](float x) { return std::isfinite(x); });
          return exact || !finite ? detail::array_json(held) : detail::rounded_json(held);
        } else {
          return detail::array_json(held);
        }
      },
      array);
}

Json list_json(const std::vector<AnyArray>& arrays) {
  Json list = Json::array();
  for (const AnyArray& array : arrays) list.push_back(array_json(array, true));
  return list;
}

template <class T>
AnyArray array_of(const Variable<T>& variable) {
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
  return x.defined() ? detail::statistics_json(x.value()) : Json();
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
      return detail::array_json(masked);
  }
  Mask one = Mask::from_shape({shape.length, shape.length});
  std::copy_n(masked.data(), size, one.data());
  return detail::array_json(one);
}

template <class T>
Json value_json(const detail::RecordedValue<T>& value) {
  using Kind = typename detail::RecordedValue<T>::Kind;
  Json all{{"kind", value.kind == Kind::op          ? "op"
                    : value.kind == Kind::parameter ? "parameter"
                                                    : "constant"},
           {"name", value.name},
           {"shape", detail::shape_json(value.variable.shape())}};
  if (value.kind != Kind::op) return all;
  all["attributes"] = value.attributes;
  if (value.module) all["module"] = *value.module;
  for (const auto& input : value.inputs) all["inputs"].push_back(input ? Json(*input) : Json());
  return all;
}

Json rows_json(const std::vector<ProfileRow>& rows) {
  Json list = Json::array();
  for (const ProfileRow& row : rows) {
    list.push_back({{"name", row.name},
                    {"calls", row.calls},
                    {"forward_seconds", row.forward_seconds},
                    {"backward_seconds", row.backward_seconds},
                    {"bytes", row.bytes}});
  }
  return list;
}

constexpr std::size_t max_bytes = 8'000'000;

/// The page, or the data alone if the path says so.
void write_data(const std::string& data, const std::string& path) {
  const std::string text = path.ends_with(".json") ? data : detail::page_with(data);
  AtomicFile file(path);
  file.write(std::as_bytes(std::span(text)));
  file.commit();
}

/// The data of a report.
Json parsed(const std::string& name, const std::string& text) {
  constexpr int deepest = 64;
  const auto check_depth = [&](int depth, Json::parse_event_t, Json&) {
    if (depth > deepest)
      detail::fail<FileError>(name, ": must not be nested deeper than ", deepest, " levels");
    return true;
  };
  Json data;
  try {
    data = Json::parse(text, check_depth);
  } catch (const Json::exception& error) {
    const std::string what = error.what();  // begins with the exception's name in brackets
    detail::fail<FileError>(name, ": ", what.substr(what.find("] ") + 2));
  }
  if (!data.is_object() || data.value("format", Json()) != "xgrad-report")
    detail::fail<FileError>(name, ": must be the data of a report, with \"format\": \"xgrad-report\"");
  if (data.value("version", Json()) != 1)
    detail::fail<FileError>(name, ": must have version 1, got ", data.value("version", Json()).dump());
  if (!data.value("runs", Json()).is_array()) detail::fail<FileError>(name, ": runs must be a list");
  return data;
}

/// What was shown of a program.
template <class T>
struct ShownTensor {
  std::string section, name;
  std::variant<Variable<T>, Ids> value;
};

std::uint64_t next_number() {
  static std::atomic<std::uint64_t> recordings{0};
  return ++recordings;
}

template <class T>
Json tensor_json(const ShownTensor<T>& tensor, const detail::RecordedGraph<T>& graph,
                 std::size_t place_of_graph) {
  Json one{{"section", tensor.section}, {"name", tensor.name}};
  if (const Ids* const ids = std::get_if<Ids>(&tensor.value)) {
    one["value"] = detail::array_json(*ids);
  } else {
    const auto& variable = std::get<Variable<T>>(tensor.value);
    one["value"] = detail::array_json(variable.value());
    const auto found = std::ranges::find_if(graph.values, [&](const detail::RecordedValue<T>& value) {
      return &value.variable.value() == &variable.value();
    });
    if (found != graph.values.end()) {
      one["graph"] = place_of_graph;
      one["id"] = found - graph.values.begin();
      if (found->gradient.defined()) one["gradient"] = detail::array_json(found->gradient.value());
    }
  }
  return one;
}

}  // namespace

template <class T>
struct Recording<T>::Impl {
  const std::uint64_t number = next_number();  // unlike an address it is never another one's
  detail::Recorder<T> recorder;
  std::vector<ShownTensor<T>> tensors;
};

template <class T>
Recording<T>::Recording() : impl_(std::make_unique<Impl>()) {}
template <class T>
Recording<T>::~Recording() = default;

template <class T>
void Recording<T>::tensor(const std::string& section, const std::string& name, const Variable<T>& x) {
  impl_->tensors.push_back({section, name, x});
}

template <class T>
void Recording<T>::tensor(const std::string& section, const std::string& name, const Ids& ids) {
  impl_->tensors.push_back({section, name, ids});
}

struct Report::Impl {
  Json run = Json::object();
  std::vector<std::string> notes;
  std::set<std::size_t> steps;
  std::vector<std::pair<std::string, Curve>> curves;
  std::vector<std::pair<std::string, Histograms>> parameters;
  std::map<std::string, AnyArray> before;  // weights when parameters() was called last
  std::vector<AttentionRecord> attention;
  std::vector<std::pair<Json, ByStep<Json>>> predictions;
  std::vector<GraphRecord> graphs;
  std::map<std::uint64_t, std::vector<Json>> tensors;  // by recording, in the order of these

  /// The entry of that name, a new one at the end if there is none.
  template <class V, class K>
  static V& entry(std::vector<std::pair<K, V>>& list, const K& name) {
    for (auto& [known, value] : list) {
      if (known == name) return value;
    }
    return list.emplace_back(name, V{}).second;
  }

  template <class R>
  static std::size_t place(std::vector<R>& list, const Json& head) {
    const auto found = std::ranges::find(list, head, &R::head);
    if (found != list.end()) return static_cast<std::size_t>(found - list.begin());
    list.push_back({head, {}});
    return list.size() - 1;
  }

  Json all(const Detail& detail) const;

  /// Returns the graph's place. Values are kept of its last step, statistics of all.
  template <class T>
  std::size_t add_graph(const std::string& name, const detail::RecordedGraph<T>& graph, std::size_t step);

  template <class T>
  void add_attention(const ReportExample& example, const detail::RecordedGraph<T>& graph,
                     std::size_t place_of_graph, std::size_t step);
};

template <class T>
std::size_t Report::Impl::add_graph(const std::string& name, const detail::RecordedGraph<T>& graph,
                                    std::size_t step) {
  Json head{{"name", name}, {"loss", graph.loss}, {"modules", graph.modules}};
  GraphSnapshot snapshot{Json::array(), Json::array(), {}, {}};
  for (const detail::RecordedValue<T>& value : graph.values) {
    head["values"].push_back(value_json(value));
    snapshot.statistics.push_back(statistics_of(value.variable));
    snapshot.gradient_statistics.push_back(statistics_of(value.gradient));
    snapshot.values.push_back(array_of(value.variable));
    snapshot.gradients.push_back(array_of(value.gradient));
  }
  const std::size_t found = place(graphs, head);
  ByStep<GraphSnapshot>& snapshots = graphs[found].snapshots;
  snapshots[step] = std::move(snapshot);
  for (auto one = snapshots.begin(); std::next(one) != snapshots.end(); ++one) {
    one->second.values.clear();
    one->second.gradients.clear();
  }
  return found;
}

template <class T>
void Report::Impl::add_attention(const ReportExample& example, const detail::RecordedGraph<T>& graph,
                                 std::size_t place_of_graph, std::size_t step) {
  for (std::size_t id = 0; id < graph.values.size(); ++id) {
    const detail::RecordedValue<T>& value = graph.values[id];
    const auto shape = AttentionShape::of(value.variable.shape(), example);
    const bool counts = value.gradient.defined() || !graph.values[graph.loss].variable.requires_grad();
    if (value.name != "softmax" || !shape || !counts) continue;
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

Json Report::Impl::all(const Detail& detail) const {
  Json result = run;
  result["steps"] = steps;
  result["notes"] = notes;
  for (const auto& [name, curve] : curves) {
    Json one{
        {"name", name},
        {"values", detail::array_json(detail::array_of<double>(std::span(std::as_const(curve.values))))}};
    const auto follows = [](std::int64_t a, std::int64_t b) { return b != a + 1; };
    if (std::ranges::adjacent_find(curve.steps, follows) == curve.steps.end()) {
      one["first"] = curve.steps.front();
    } else {
      one["steps"] = detail::array_json(detail::array_of<std::int64_t>(std::span(curve.steps)));
    }
    result["curves"].push_back(std::move(one));
  }
  for (const auto& [name, histograms] : parameters) {
    result["parameters"].push_back({{"name", name},
                                    {"shape", histograms.shape},
                                    {"snapshots", by_notch(steps, histograms.snapshots,
                                                           [](const Json& snapshot) { return snapshot; })}});
  }
  for (std::size_t i = 0; i < attention.size(); i += detail.every_layer) {
    Json one = attention[i].head;
    ByStep<AttentionSnapshot> shown = attention[i].snapshots;
    if (!detail.all_steps) shown.erase(shown.begin(), std::prev(shown.end()));
    one["snapshots"] = by_notch(steps, shown, [&](const AttentionSnapshot& snapshot) {
      return Json{{"weights", array_json(snapshot.weights, detail.exact)},
                  {"gradient", array_json(snapshot.gradient, detail.exact)}};
    });
    result["attention"].push_back(std::move(one));
  }
  for (const auto& [head, snapshots] : predictions) {
    Json one = head;
    one["snapshots"] = by_notch(steps, snapshots, [](const Json& snapshot) { return snapshot; });
    result["predictions"].push_back(std::move(one));
  }
  for (const GraphRecord& graph : graphs) {
    Json one = graph.head;
    one["snapshots"] = by_notch(steps, graph.snapshots, [&](const GraphSnapshot& snapshot) {
      Json statistics{{"value", snapshot.statistics}, {"gradient", snapshot.gradient_statistics}};
      if (detail.values && !snapshot.values.empty())
        statistics.update(
            {{"values", list_json(snapshot.values)}, {"gradients", list_json(snapshot.gradients)}});
      return statistics;
    });
    result["graphs"].push_back(std::move(one));
  }
  for (const auto& [number, list] : tensors) {
    for (const Json& tensor : list) result["tensors"].push_back(tensor);
  }
  return {{"format", "xgrad-report"}, {"version", 1}, {"runs", {std::move(result)}}};
}

Report::Report(std::string title) : impl_(std::make_unique<Impl>()) {
  impl_->run["title"] = std::move(title);
}
Report::Report(Report&&) noexcept = default;
Report& Report::operator=(Report&&) noexcept = default;
Report::~Report() = default;

void Report::describe(const RunDescription& run) {
  Json& about = impl_->run;
  if (!run.program.empty()) about["program"] = run.program;
  if (!run.options.empty()) about["options"] = run.options;
  if (run.seed) about["seed"] = std::to_string(*run.seed);
  if (run.parameter_count) about["parameter_count"] = *run.parameter_count;
  if (run.seconds) about["seconds"] = *run.seconds;
  about["versions"] = {{"xgrad", XGRAD_VERSION},
                       {"compiler", __VERSION__},
                       {"OpenBLAS's processor", kernels::blas_core_name()}};
  about["threads"] = num_threads();
  rusage usage = {};
  if (getrusage(RUSAGE_SELF, &usage) == 0)
    about["memory_bytes"] = static_cast<std::size_t>(usage.ru_maxrss) * 1024;
}

void Report::note(std::string text) { impl_->notes.push_back(std::move(text)); }

void Report::point(const std::string& curve, std::size_t step, double value) {
  Curve& points = Impl::entry(impl_->curves, curve);
  points.steps.push_back(static_cast<std::int64_t>(step));
  points.values.push_back(value);
}

ReportStep Report::step(std::size_t steps_done) {
  impl_->steps.insert(steps_done);
  return {*impl_, steps_done};
}

void Report::profile(const Profile& profile) {
  impl_->run["profile"] = {
      {"seconds", profile.seconds}, {"ops", rows_json(profile.ops)}, {"modules", rows_json(profile.modules)}};
}

void Report::log(const std::string& path) {
  std::ifstream file(path);
  if (!file) detail::fail<FileError>(path, ": cannot be read");
  std::size_t number = 0;
  for (std::string line; std::getline(file, line);) {
    ++number;
    const Json entry = Json::parse(line, nullptr, false);
    if (number == 1 && entry.is_object() && entry.contains("run")) {
      impl_->run.update(entry["run"]);
    } else if (entry.is_object() && entry.value("step", Json()).is_number_unsigned()) {
      for (const auto& [name, value] : entry.items()) {
        if (name != "step" && (value.is_number() || value.is_null()))
          point(name, entry["step"], value.is_null() ? std::nan("") : value.get<double>());
      }
    } else {
      detail::fail<FileError>(path, ":", number,
                              ": must be a line of a training run's metrics, got another one");
    }
  }
}

std::string Report::json() const {
  const auto text = [this](const Detail& detail, const std::string& left_out) {
    Json all = impl_->all(detail);
    if (!left_out.empty()) all["runs"][0]["notes"].push_back(left_out);
    return all.dump(-1, ' ', false, Json::error_handler_t::replace);
  };
  Detail detail;
  std::string left_out, all = text(detail, left_out);
  const auto leave_out = [&](bool& kept, const char* what) {
    if (all.size() <= max_bytes) return;
    kept = false;
    left_out += (left_out.empty() ? "To keep the file small, " : ", ") + std::string(what);
    all = text(detail, left_out + ".");
  };
  leave_out(detail.exact, "attention weights are rounded to 16 bits");
  leave_out(detail.values, "the graph shows no single values");
  leave_out(detail.all_steps, "attention is shown at the last step alone");
  while (all.size() > max_bytes && detail.every_layer < impl_->attention.size()) {
    detail.every_layer *= 2;
    all = text(detail, left_out + ", and of one in " + std::to_string(detail.every_layer) + " layers.");
  }
  return all;
}

void Report::write(const std::string& path) const { write_data(json(), path); }

void write_comparison(const std::vector<std::pair<std::string, std::string>>& names_and_texts,
                      const std::string& path) {
  Json all{{"format", "xgrad-report"}, {"version", 1}, {"runs", Json::array()}};
  for (const auto& [name, text] : names_and_texts) {
    Json data = parsed(name, text);
    for (Json& run : data["runs"]) all["runs"].push_back(std::move(run));
  }
  write_data(all.dump(), path);
}

template <class T>
ReportStep& ReportStep::parameters(const Module<T>& model) {
  for (const auto& [name, parameter] : model.named_parameters()) {
    Histograms& histograms = Report::Impl::entry(report_.parameters, name);
    histograms.shape = detail::shape_json(parameter.shape());
    histograms.snapshots[step_]["weight"] = detail::histogram_json(parameter.value());
    report_.before[name] = parameter.value();
  }
  return *this;
}

template <class T>
ReportStep& ReportStep::next_step(const Module<T>& model) {
  for (const auto& [name, parameter] : model.named_parameters()) {
    const auto* const before = std::get_if<Array<T>>(&report_.before[name]);
    if (before == nullptr || !parameter.has_grad()) continue;
    Json& snapshot = Report::Impl::entry(report_.parameters, name).snapshots[step_];
    snapshot["gradient"] = detail::histogram_json(parameter.grad().value());
    snapshot["update"] = detail::histogram_json(Array<T>(parameter.value() - *before));
  }
  report_.before.clear();
  return *this;
}

template <class T>
ReportStep& ReportStep::observe(const ReportExample& example, const Module<T>& model,
                                const std::function<Variable<std::type_identity_t<T>>()>& loss) {
  Generator unused;
  const UseGenerator use(unused);
  const EvalMode<T> eval(model);
  const EnableGrad enable;
  const detail::SingleOps single;
  const Recording<T> recording;
  return recorded(example, recording, loss(), model.named_parameters());
}

template <class T>
ReportStep& ReportStep::recorded(const ReportExample& example, const Recording<T>& recording,
                                 const Variable<std::type_identity_t<T>>& loss,
                                 const std::vector<NamedParameter<std::type_identity_t<T>>>& names) {
  const typename Recording<T>::Impl& notes = *recording.impl_;
  std::vector<Variable<T>> shown;
  for (const auto& tensor : notes.tensors) {
    if (const auto* const variable = std::get_if<Variable<T>>(&tensor.value)) shown.push_back(*variable);
  }
  const detail::RecordedGraph<T> graph = notes.recorder.graph_of(loss, names, shown);
  const std::size_t place = report_.add_graph(example.text, graph, step_);
  report_.add_attention(example, graph, place, step_);
  std::vector<Json>& tensors = report_.tensors[notes.number];
  tensors.resize(notes.tensors.size());
  for (std::size_t i = 0; i < tensors.size(); ++i) {
    if (!tensors[i].contains("gradient")) tensors[i] = tensor_json(notes.tensors[i], graph, place);
  }
  return *this;
}

ReportStep& ReportStep::prediction(const std::string& text, const std::vector<Answer>& answers,
                                   const std::string& truth) {
  Json head{{"text", text}}, list = Json::array();
  if (!truth.empty()) head["truth"] = truth;
  for (const auto& [label, probability] : answers)
    list.push_back({{"label", label}, {"probability", detail::number_json(probability)}});
  Report::Impl::entry(report_.predictions, head)[step_] = {{"answers", list}};
  return *this;
}

std::vector<Answer> most_probable(const std::vector<std::string>& labels,
                                  std::span<const float> probabilities, std::size_t count) {
  if (labels.size() != probabilities.size()) {
    detail::fail<ValueError>("most_probable: there must be as many probabilities as labels, got ",
                             probabilities.size(), " and ", labels.size());
  }
  std::vector<std::size_t> order(labels.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::ranges::stable_sort(order, std::greater(), [&](std::size_t i) { return probabilities[i]; });
  order.resize(std::min(count, order.size()));
  std::vector<Answer> answers;
  answers.reserve(order.size());
  for (const std::size_t i : order) answers.emplace_back(labels[i], static_cast<double>(probabilities[i]));
  return answers;
}

#define XGRAD_INSTANTIATE(T)                                                                               \
  template class Recording<T>;                                                                             \
  template ReportStep& ReportStep::parameters(const Module<T>&);                                           \
  template ReportStep& ReportStep::next_step(const Module<T>&);                                            \
  template ReportStep& ReportStep::observe(const ReportExample&, const Module<T>&,                         \
                                           const std::function<Variable<T>()>&);                           \
  template ReportStep& ReportStep::recorded(const ReportExample&, const Recording<T>&, const Variable<T>&, \
                                            const std::vector<NamedParameter<T>>&);

XGRAD_INSTANTIATE(float)
XGRAD_INSTANTIATE(double)

}  // namespace xgrad
