#pragma once

// A model folder, its inputs and what PyTorch gave for them (inputs.safetensors, expected.safetensors and
// case.json), for programs that compare.

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <functional>
#include <iostream>
#include <map>
#include <set>
#include <string>
#include <type_traits>
#include <vector>

#include <nlohmann/json.hpp>

#include <xgrad/files.hpp>
#include <xgrad/pretrained.hpp>
#include <xgrad/xgrad.hpp>

#include "deviation.hpp"
#include "json_file.hpp"

namespace xgrad_tests {

using nlohmann::json;
using xgrad::Array, xgrad::Ids, xgrad::NamedParameter, xgrad::SafetensorsFile, xgrad::StateDict,
    xgrad::TensorView, xgrad::Variable;

/// How much was compared.
struct Tally {
  std::size_t passed = 0, failed = 0, skipped = 0;

  void count(bool right) { ++(right ? passed : failed); }
  Tally& operator+=(const Tally& other) {
    passed += other.passed;
    failed += other.failed;
    skipped += other.skipped;
    return *this;
  }
};

/// The tensors of a file, by name.
class Tensors {
 public:
  explicit Tensors(const std::string& path) : path_(path), file_(path) {
    for (const TensorView& tensor : file_.tensors()) tensors_[tensor.name] = &tensor;
  }

  bool has(const std::string& name) const { return tensors_.contains(name); }
  const TensorView& at(const std::string& name) const {
    const auto found = tensors_.find(name);
    if (found == tensors_.end()) throw std::runtime_error(path_ + ": there is no tensor " + name);
    return *found->second;
  }
  template <class T>
  Array<T> array(const std::string& name) const {
    return xgrad::to_array<T>(at(name));
  }
  std::vector<std::string> names(const std::string& begin) const {
    std::vector<std::string> names;
    for (const auto& [name, tensor] : tensors_) {
      if (name.starts_with(begin)) names.push_back(name);
    }
    return names;
  }

 private:
  std::string path_;
  SafetensorsFile file_;
  std::map<std::string, const TensorView*> tensors_;
};

/// A model for a task, as a training needs it.
template <class T>
struct TrainedModel {
  std::vector<NamedParameter<T>> parameters;
  std::function<Variable<T>(const std::string& batch)> loss;
};

/// How far numbers in double may be off from those of a file in F64 and in F32, in units of the largest.
struct DoubleRounding {
  double f64, f32;
};

/// Its comparisons; a program's own class derives from it.
class GoldenFolder {
 public:
  GoldenFolder(const std::string& path, const DoubleRounding& rounding)
      : path_(path),
        case_(read_json(path + "/case.json")),
        inputs_(path + "/inputs.safetensors"),
        expected_(path + "/expected.safetensors"),
        architecture_(entry_as<std::string>(case_, "architecture")),
        rounding_(rounding) {}
  virtual ~GoldenFolder() = default;

 protected:
  /// The tensor of files that has a parameter.
  virtual std::string tensor_of(const std::string& parameter) const { return parameter; }

  void print_summary() const {
    std::cout << std::filesystem::path(path_).filename().string() << ", " << architecture_ << ": "
              << tally_.passed + tally_.failed << " comparisons";
    for (const auto& [type, worst] : worst_) {
      if (worst.distance == 0) continue;
      std::cout << "; " << type << " off by at most " << worst.distance << " of the largest value ("
                << worst.name << ")";
    }
    std::cout << '\n';
  }

  /// What is refused counts as one failure.
  template <class F>
  void attempt(const char* what, const F& f) {
    try {
      f();
    } catch (const std::exception& error) {
      tally_.count(false);
      std::cout << "FAILED  " << path_ << ": " << what << ": " << error.what() << '\n';
    }
  }

  static constexpr double float_rounding = 1e-5;     // of one pass in float
  static constexpr double training_rounding = 1e-4;  // of steps in float

  /// What a number of type T may be off, in units of the largest value: as far as rounding goes that is done
  /// in T and in the file.
  template <class T>
  double tolerance(const TensorView& expected) const {
    if (std::is_same_v<T, float>) return float_rounding;
    return expected.dtype == xgrad::DType::F64 ? rounding_.f64 : rounding_.f32;
  }

  double largest(const std::string& name) const {
    double largest = 0;
    for (const double value : expected_.array<double>(name)) largest = std::max(largest, std::abs(value));
    return largest;
  }

  template <class T>
  void compare(const std::string& name, const Variable<T>& got, double scale, double allowed) {
    const Array<double> want = expected_.array<double>(name);
    const bool fits = got.defined() && xgrad::same_shape(got.shape(), want.shape());
    const Deviation deviation =
        fits ? worst_deviation(got.value(), want, [&](std::size_t) { return scale * allowed; }) : Deviation{};
    note(name, fits ? deviation.distance / std::max(scale, 1e-300) : INFINITY, deviation.excess <= 1 && fits);
  }
  template <class T>
  void compare(const std::string& name, const Variable<T>& got) {
    compare(name, got, largest(name), tolerance<T>(expected_.at(name)));
  }
  void compare(const std::string& name, double got, double want, double allowed) {
    const double distance = std::abs(got - want) / std::abs(want);
    note(name, distance, distance <= allowed || got == want);
  }

  void note(const std::string& name, double distance, bool right) {
    tally_.count(right);
    Worst& worst = worst_[type_];
    if (distance > worst.distance) worst = {distance, name};
    if (!right)
      std::cout << "FAILED  " << path_ << ": " << name << " in " << type_ << ", off by " << distance
                << " of the largest value\n";
  }

  /// The gradient of a bias may be 0 but for rounding, as that of keys is, and those of keys and queries are
  /// what is left of larger numbers: the scale is that of the block,
  /// "grad.bert.encoder.layer.0.attention.self."
  template <class T>
  void compare_gradients(const StateDict<T>& gradients) {
    std::set<std::string> left;
    for (const std::string& name : expected_.names("grad.")) left.insert(name);
    for (const auto& [tensor, gradient] : gradients) {
      const std::string name = "grad." + tensor;
      if (left.erase(name) == 0) continue;
      const std::string block = name.substr(0, name.rfind('.', name.rfind('.') - 1) + 1);
      double scale = 0;
      for (const std::string& beside : expected_.names(block)) scale = std::max(scale, largest(beside));
      const double allowed = tolerance<T>(expected_.at(name)) * (std::is_same_v<T, float> ? 3 : 1);
      compare(name, Variable<T>(gradient), scale, allowed);
    }
    for (const std::string& name : left) note(name + ", which has no gradient", INFINITY, false);
  }

  /// Which parameters have no weight decay.
  template <class T>
  void check_decay(const std::vector<NamedParameter<T>>& parameters) {
    const json* const listed = no_decay();
    if (listed == nullptr) return;
    const auto names = as<std::vector<std::string>>(*listed, "no_decay");
    const std::set<std::string> want(names.begin(), names.end());
    std::set<std::string> left = want;
    for (const NamedParameter<T>& one : parameters) {
      const auto groups = xgrad::pretrained::decay_groups<T>({one}, {.weight_decay = 0.5});
      const bool decays = groups.front().options.weight_decay != 0;
      const std::string tensor = tensor_of(one.first);
      left.erase(tensor);
      note("decay of " + one.first, 0, decays != want.contains(tensor));
    }
    for (const std::string& name : left)
      note("decay of " + name + ", which is no parameter", INFINITY, false);
  }

  /// The losses of the folder's training; follows its norms and rates, too.
  template <class T>
  std::vector<double> train(const TrainedModel<T>& model, std::size_t steps, bool follow) {
    const json& run = case_.at("train");
    const auto total = entry_as<std::size_t>(run, "steps"), warm_up = entry_as<std::size_t>(run, "warm_up"),
               batches = entry_as<std::size_t>(run, "batches");
    check_decay(model.parameters);
    xgrad::AdamW<T> optimizer(xgrad::pretrained::decay_groups(
        model.parameters,
        {.lr = entry_as<double>(run, "lr"), .weight_decay = entry_as<double>(run, "weight_decay")}));
    xgrad::LinearWarmupLR<T> schedule(optimizer, warm_up, total);
    std::vector<double> losses;
    for (std::size_t step = 0; step < steps; ++step) {
      optimizer.zero_grad();
      const Variable<T> loss = model.loss("train." + std::to_string(step % batches));
      loss.backward();
      const double norm = clip_grad_norm(optimizer.parameters(), entry_as<double>(run, "clip_grad_norm"));
      if (follow && std::is_same_v<T, double>) {
        const std::string at = " of step " + std::to_string(step);
        compare("gradient norm" + at, norm, list_entry(run, "grad_norms", total)[step].template get<double>(),
                1e-9);
        compare("rate" + at, optimizer.lr(),
                list_entry(run, "learning_rates", total)[step].template get<double>(), 1e-15);
      }
      optimizer.step();
      schedule.step();
      losses.push_back(loss.item());
    }
    return losses;
  }

  /// A loss may be near 0: the scale is that of all.
  void compare_losses(const std::string& name, const std::vector<double>& got, const json& want,
                      double allowed) {
    double scale = 0;
    for (const json& loss : want) scale = std::max(scale, std::abs(loss.get<double>()));
    for (std::size_t step = 0; step < got.size(); ++step) {
      const double distance = std::abs(got[step] - want.at(step).get<double>()) / scale;
      note(name + " of step " + std::to_string(step), distance, distance <= allowed);
    }
  }

  /// All steps of the folder's training.
  template <class T>
  void follow_losses(const TrainedModel<T>& model) {
    const json& run = case_.at("train");
    const auto steps = entry_as<std::size_t>(run, "steps");
    const std::vector<double> losses = train(model, steps, true);
    if (std::is_same_v<T, double>) {
      compare_losses("loss", losses, list_entry(run, "losses", steps), 1e-9);
    } else {
      compare_losses("loss", losses, list_entry(run, "losses_float32_torch", steps), training_rounding);
    }
  }

  /// Some in training mode, with the draws of the folder's seed.
  template <class T>
  void follow_dropout_losses(const TrainedModel<T>& model) {
    const json& dropout = case_.at("train").at("dropout");
    const json& want = list_entry(dropout, std::is_same_v<T, double> ? "losses_float64" : "losses_float32");
    xgrad::manual_seed(entry_as<std::uint64_t>(dropout, "seed"));
    compare_losses("loss with dropout", train(model, want.size(), false), want,
                   std::is_same_v<T, double> ? 1e-9 : training_rounding);
  }

  std::string path_;
  json case_;
  Tensors inputs_, expected_;
  std::string architecture_, type_;
  Tally tally_;

 private:
  struct Worst {
    double distance = 0;
    std::string name = "nothing";
  };

  /// Of the training or of the folder.
  const json* no_decay() const {
    if (case_.contains("no_decay")) return &case_.at("no_decay");
    const json& run = case_.at("train");
    return run.contains("no_decay") ? &run.at("no_decay") : nullptr;
  }

  DoubleRounding rounding_;
  std::map<std::string, Worst> worst_;
};

}  // namespace xgrad_tests
