#pragma once

// What the notebook programs share: words as Python prints them, and the backward section at their end.

#include <cmath>
#include <cstddef>
#include <cstdlib>
#include <filesystem>
#include <iostream>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <xtensor/xbuilder.hpp>
#include <xtensor/xmath.hpp>

#include <xgrad/report.hpp>
#include <xgrad/xgrad.hpp>

#include "../apps/program.hpp"

namespace examples {

/// What --report FILE asks a notebook for: a page with the tensors that it prints, in their order, and with
/// the graphs of its losses. Without that option nothing is done.
class NotebookReport {
 public:
  /// Reads the command line, and ends the program if there is something wrong with it.
  NotebookReport(int argc, char** argv, std::string title) {
    CLI::App app(title + ".");
    app.add_option("--report", path_, "Write a page to look at to this file");
    if (const std::optional<int> exit_code = apps::parse(app, argc, argv)) std::exit(*exit_code);
    if (path_.empty()) return;
    report_.emplace(std::move(title));
    report_->describe({.program = std::filesystem::path(argv[0]).filename().string()});
    recording_.emplace();
  }

  /// Tensors with a row for each word get its name.
  void show(const std::string& section, const std::vector<xgrad::NamedParameter<float>>& tensors,
            const std::vector<std::string>& words = {}) {
    if (!recording_) return;
    for (const auto& [name, tensor] : tensors) {
      const bool is_of_words = tensor.dimension() > 1 && tensor.shape(-2) == words.size();
      recording_->tensor(section, name, tensor, {.rows = is_of_words ? words : std::vector<std::string>()});
    }
  }
  void show(const std::string& section, const std::string& name, const xgrad::Ids& ids) {
    if (recording_) recording_->tensor(section, name, ids);
  }

  /// Shows the loss, what it was computed from, and the gradients of the parameters; call it before
  /// backward(), and without sequences if none attends.
  void show_loss(const std::string& name, const xgrad::Variable<float>& loss,
                 const std::vector<xgrad::NamedParameter<float>>& parameters,
                 const std::vector<std::vector<std::string>>& sequences) {
    if (!recording_) return;
    const std::string section = "Forward and backward: " + name;
    show(section, {{"loss", loss}});
    show(section, parameters);
    report_->step(0).recorded({name, sequences}, *recording_, loss, parameters);
  }

  /// To be called after the last loss: what follows is not recorded.
  void write() {
    if (!report_) return;
    recording_.reset();
    report_->write(path_);
    apps::tell_where_it_is(path_);
  }

 private:
  std::string path_;
  std::optional<xgrad::Report> report_;
  std::optional<xgrad::Recording<float>> recording_;
};

/// ['my', 'shoes']
inline std::string quoted(const std::vector<std::string>& words) {
  std::string text;
  for (const std::string& word : words) text += (text.empty() ? "'" : ", '") + word + "'";
  return "[" + text + "]";
}

/// sum(y[i] cos(i)) over the flat index i: a loss in which every element counts differently.
template <class T>
xgrad::Variable<T> cosine_sum(const xgrad::Variable<T>& y) {
  const xgrad::Variable<T> weights(
      xt::cast<T>(xt::cos(xt::arange<double>(0, static_cast<double>(y.size())))));
  return sum(y * reshape(weights, y.shape()));
}

inline void print_gradients(const std::vector<xgrad::NamedParameter<float>>& gradients) {
  for (const auto& [name, gradient] : gradients)
    std::cout << "\ngradient of " << name << ":\n" << gradient << '\n';
}

/// The gradients that backward() left in leaves.
inline void print_leaf_gradients(const std::vector<xgrad::NamedParameter<float>>& leaves) {
  for (const auto& [name, leaf] : leaves) print_gradients({{name, leaf.grad()}});
}

/// The same values as a leaf in double, which gradient checks need.
inline xgrad::Variable<double> in_double(const xgrad::Variable<float>& x) {
  return xgrad::Variable<double>(xt::cast<double>(x.value()), true);
}

/// Loads a module with weights of float.
inline void load_in_double(const xgrad::Module<double>& module, const xgrad::StateDict<float>& weights) {
  xgrad::StateDict<double> state;
  for (const auto& [name, array] : weights) state[name] = xt::cast<double>(array);
  module.load_state_dict(state);
}

/// Checks the gradients of a loss, as a function of weights in double, against finite differences, and that
/// it is the loss whose gradients were printed. Returns whether both hold.
inline bool report_gradcheck(const xgrad::Variable<float>& printed, const xgrad::CheckedFunction& loss,
                             const std::vector<xgrad::Variable<double>>& weights) {
  std::size_t count = 0;
  for (const xgrad::Variable<double>& weight : weights) count += weight.size();
  const xgrad::Variable<double> again = loss(weights);
  const xgrad::GradcheckReport report = xgrad::gradcheck(loss, weights);
  std::cout << "\nthe same loss in double:\n"
            << again.detach() << "\ngradient check of " << count
            << " numbers in double: " << (report ? "passed" : report.worst) << '\n';
  return report && std::abs(again.item() - printed.item()) < 1e-5;
}

/// Says whether a module of the library gives what the steps gave, and returns it.
inline bool report_same(const std::string& module, const xgrad::Variable<double>& steps,
                        const xgrad::Variable<double>& output) {
  const bool same = xt::amax(xt::abs(steps.value() - output.value()))() < 1e-12;
  std::cout << "\nthe library's " << module << (same ? " gives the same output" : " gives another output")
            << '\n';
  return same;
}

}  // namespace examples
