#include "report.hpp"

#include <sys/resource.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <cmath>
#include <cstdio>
#include <limits>
#include <memory>
#include <numeric>
#include <optional>
#include <set>
#include <span>
#include <system_error>
#include <type_traits>
#include <utility>
#include <variant>

#include "../base/detail/system/retried.hpp"
#include "../base/detail/text/json_tree.hpp"
#include "../base/error.hpp"
#include "../base/file.hpp"
#include "../base/random.hpp"
#include "../base/threads.hpp"
#include "../models/eval_mode.hpp"
#include "../ops/product/matmul_precision.hpp"
#include "detail/array_json.hpp"
#include "detail/collected_run.hpp"
#include "detail/page.hpp"
#include "detail/recording.hpp"
#include "detail/statistics.hpp"

namespace xgrad {
namespace {

using Json = detail::JsonTree;

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

/// The page, or the data alone if the path says so.
void write_data(const std::string& data, const std::string& path) {
  const std::string text = path.ends_with(".json") ? data : detail::page_with(data);
  AtomicFile file(path);
  file.write(std::as_bytes(std::span(text)));
  file.commit();
}

Json parsed(const std::string& name, const std::string& text) {
  constexpr int deepest = 64;
  const auto check_depth = [&](int depth, Json::parse_event_t, Json&) {
    if (depth > deepest)
      detail::fail<FileError>(name, ": must not be nested deeper than ", deepest, " levels");
    return true;
  };
  try {
    return Json::parse(text, check_depth);
  } catch (const Json::exception& error) {
    const std::string what = error.what();  // begins with the exception's name in brackets
    detail::fail<FileError>(name, ": must be JSON: ", what.substr(what.find("] ") + 2));
  }
}

Json parsed_report(const std::string& name, const std::string& text) {
  Json data = parsed(name, text);
  if (!data.is_object() || data.value("format", Json()) != "xgrad-report")
    detail::fail<FileError>(name, ": must be the data of a report, with \"format\": \"xgrad-report\"");
  if (data.value("version", Json()) != 1)
    detail::fail<FileError>(name, ": must have version 1, got ", data.value("version", Json()).dump());
  if (!data.value("runs", Json()).is_array()) detail::fail<FileError>(name, ": runs must be a list");
  return data;
}

/// The texts by name, or one text, that the first line of a metrics file has of a run.
Json texts_of(const std::string& at, const Json& run, const char* name) {
  const Json found = run.value(name, Json());
  const auto is_text = [](const Json& one) { return one.is_string(); };
  const bool right = found.is_null() || found.is_string() ||
                     (found.is_object() && std::all_of(found.begin(), found.end(), is_text));
  if (!right) detail::fail<FileError>(at, ": ", name, " must be text, got ", found.dump());
  return found;
}

/// What was shown of a program.
template <class T>
struct ShownTensor {
  std::string section, name;
  std::variant<Variable<T>, Ids> value;
  TensorLabels labels;
};

std::uint64_t next_number() {
  static std::atomic<std::uint64_t> recordings{0};
  return ++recordings;
}

template <class T>
Json tensor_json(const ShownTensor<T>& tensor, const detail::RecordedGraph<T>& graph,
                 std::size_t place_of_graph) {
  Json one{{"section", tensor.section}, {"name", tensor.name}};
  for (const auto& [name, texts] : {std::pair("axes", &tensor.labels.axes),
                                    {"rows", &tensor.labels.rows},
                                    {"columns", &tensor.labels.columns}}) {
    if (!texts->empty()) one[name] = *texts;
  }
  if (const Ids* const ids = std::get_if<Ids>(&tensor.value)) {
    one["value"] = detail::array_json(*ids);
  } else {
    const auto& variable = std::get<Variable<T>>(tensor.value);
    one["value"] = detail::array_json(variable.value());
    const auto is_this = [&](const detail::RecordedValue<T>& value) {
      return &value.variable.value() == &variable.value();
    };
    const auto found = std::find_if(graph.values.begin(), graph.values.end(), is_this);
    if (found != graph.values.end()) {
      one["graph"] = place_of_graph;
      one["id"] = found - graph.values.begin();
      if (found->gradient.defined()) one["gradient"] = detail::array_json(found->gradient.value());
    }
  }
  return one;
}

template <class T>
std::vector<NamedParameter<T>> parameters_and_buffers(const Module<T>& model) {
  std::vector<NamedParameter<T>> all = model.named_parameters();
  for (NamedParameter<T>& buffer : model.named_buffers()) all.push_back(std::move(buffer));
  return all;
}

}  // namespace

template <class T>
struct Recording<T>::Impl {
  const std::uint64_t number = next_number();  // unlike an address it is never another one's
  detail::Trace<T> trace{detail::GradientOps::without};
  std::vector<ShownTensor<T>> tensors;
};

template <class T>
Recording<T>::Recording() : impl_(std::make_unique<Impl>()) {}
template <class T>
Recording<T>::~Recording() = default;

template <class T>
void Recording<T>::tensor(const std::string& section, const std::string& name, const Variable<T>& x,
                          const TensorLabels& labels) {
  impl_->tensors.push_back({section, name, x, labels});
}

template <class T>
void Recording<T>::tensor(const std::string& section, const std::string& name, const Ids& ids,
                          const TensorLabels& labels) {
  impl_->tensors.push_back({section, name, ids, labels});
}

struct Report::Impl : detail::CollectedRun {};

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
  about["versions"] = {
      {"xgrad", XGRAD_VERSION}, {"compiler", __VERSION__}, {"OpenBLAS's processor", blas_core_name()}};
  about["threads"] = num_threads();
  rusage usage = {};
  if (getrusage(RUSAGE_SELF, &usage) == 0)
    about["memory_bytes"] = static_cast<std::size_t>(usage.ru_maxrss) * 1024;
}

void Report::note(std::string text) { impl_->notes.push_back(std::move(text)); }

void Report::point(const std::string& curve, std::size_t step, double value) {
  detail::Curve& points = Impl::entry(impl_->curves, curve);
  if (!std::in_range<std::int64_t>(step))
    detail::fail<ValueError>("Report: a step must be below 2^63, got ", step, " in ", curve);
  const auto number = static_cast<std::int64_t>(step);
  if (!points.steps.empty() && points.steps.back() >= number) {
    detail::fail<ValueError>("Report: the steps of a curve must ascend, got ", number, " after ",
                             points.steps.back(), " in ", curve);
  }
  points.steps.push_back(number);
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
  static const std::map<std::string, std::string> names{{"lr", "learning rate"},
                                                        {"grad_norm", "gradient norm"}};
  const auto fail_to_read = [&] {
    detail::fail<FileError>(path, ": cannot be read: ", std::system_category().message(errno));
  };
  const std::unique_ptr<std::FILE, detail::CloseFile> file(
      detail::retried([&] { return std::fopen(path.c_str(), "rb"); }));
  if (!file) fail_to_read();
  std::size_t number = 0;
  std::optional<std::size_t> last;
  std::string line;
  for (bool is_whole = true; is_whole;) {
    is_whole = detail::next_line(file.get(), line);
    if (!is_whole) {
      if (std::ferror(file.get()) != 0) fail_to_read();
      if (line.empty() || number > 0) break;  // a run that was killed may not have finished its last line
    }
    const std::string at = path + ":" + std::to_string(++number);
    const Json entry = parsed(at, line);
    if (number == 1 && entry.is_object() && entry.value("run", Json()).is_object()) {
      for (const char* const name : {"options", "versions", "seed"}) {
        const Json texts = texts_of(at, entry["run"], name);
        if (!texts.is_null()) impl_->run[name] = texts;
      }
    } else if (entry.is_object() && entry.value("step", Json()).is_number_unsigned()) {
      const std::size_t step = entry["step"];
      if (last && *last >= step)
        detail::fail<FileError>(at, ": steps must ascend, got ", step, " after ", *last);
      last = step;
      for (const auto& [name, value] : entry.items()) {
        if (name == "step" || (!value.is_number() && !value.is_null())) continue;
        const auto known = names.find(name);
        point(known == names.end() ? name : known->second, step,
              value.is_null() ? std::nan("") : value.get<double>());
      }
    } else {
      detail::fail<FileError>(at, ": must be a line of a training run's metrics, got other JSON");
    }
  }
}

std::string Report::json() const { return impl_->json(); }

void Report::write(const std::string& path) const { write_data(json(), path); }

void write_comparison(const std::vector<std::pair<std::string, std::string>>& names_and_texts,
                      const std::string& path) {
  Json all{{"format", "xgrad-report"}, {"version", 1}, {"runs", Json::array()}};
  for (const auto& [name, text] : names_and_texts) {
    Json data = parsed_report(name, text);
    for (Json& run : data["runs"]) all["runs"].push_back(std::move(run));
  }
  write_data(all.dump(), path);
}

namespace {

/// What operator[] makes of null would be an object without its container where there was no memory for one.
Json& snapshot_of(detail::Histograms& histograms, std::size_t step) {
  return histograms.snapshots.try_emplace(step, Json::object()).first->second;
}

}  // namespace

template <class T>
ReportStep& ReportStep::parameters(const Module<T>& model) {
  for (const auto& [name, parameter] : parameters_and_buffers(model)) {
    detail::Histograms& histograms = Report::Impl::entry(report_.parameters, name);
    histograms.shape = detail::shape_json(parameter.shape());
    snapshot_of(histograms, step_)["weight"] = detail::histogram_json(parameter.value());
    report_.before[name] = parameter.value();
  }
  return *this;
}

template <class T>
ReportStep& ReportStep::next_step(const Module<T>& model) {
  for (const auto& [name, parameter] : model.named_parameters()) {
    const auto* const before = std::get_if<Array<T>>(&report_.before[name]);
    if (before == nullptr || !parameter.has_grad()) continue;
    Json& snapshot = snapshot_of(Report::Impl::entry(report_.parameters, name), step_);
    snapshot["gradient"] = detail::histogram_json(parameter.grad().value());
    snapshot["update"] = detail::histogram_json(Array<T>(parameter.value() - *before));
  }
  report_.before.clear();
  return *this;
}

template <class T>
ReportStep& ReportStep::observe(const ReportExample& example, const Module<T>& model,
                                const detail::VariableFunction<std::type_identity_t<T>>& loss) {
  Generator unused;
  const UseGenerator use(unused);
  const EvalMode<T> eval(model);
  const EnableGrad enable;
  const detail::SingleOps single;
  const Recording<T> recording;
  return recorded(example, recording, loss(), parameters_and_buffers(model));
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
  const detail::RecordedGraph<T> graph = detail::recorded_graph(notes.trace.ops(), loss, names, shown);
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
  const auto rank = [&](std::size_t i) {  // nan, which is in no order, comes last
    return std::isnan(probabilities[i]) ? -std::numeric_limits<float>::infinity() : probabilities[i];
  };
  std::stable_sort(order.begin(), order.end(),
                   [&](std::size_t a, std::size_t b) { return rank(a) > rank(b); });
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
                                           const detail::VariableFunction<T>&);                            \
  template ReportStep& ReportStep::recorded(const ReportExample&, const Recording<T>&, const Variable<T>&, \
                                            const std::vector<NamedParameter<T>>&);

XGRAD_INSTANTIATE(float)
XGRAD_INSTANTIATE(double)

}  // namespace xgrad
