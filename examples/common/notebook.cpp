#include "notebook.hpp"

#include <cmath>
#include <cstddef>
#include <cstdlib>
#include <filesystem>
#include <iostream>

#include "../../apps/common/command_line.hpp"
#include "../../apps/common/program.hpp"

namespace examples {

NotebookReport::NotebookReport(int argc, char** argv, const std::string& title) {
  apps::CommandLine app(title + ".");
  app.add_option("--report", path_, "Write an HTML report to this file");
  if (const std::optional<int> exit_code = app.parse(argc, argv)) std::exit(*exit_code);
  if (path_.empty()) return;
  report_.emplace(title);
  report_->describe({.program = std::filesystem::path(argv[0]).filename().string()});
  recording_.emplace();
}

void NotebookReport::show(const std::string& section,
                          const std::vector<xgrad::NamedParameter<float>>& tensors,
                          const std::vector<std::string>& words) {
  if (!recording_) return;
  for (const auto& [name, tensor] : tensors) {
    const bool is_of_words = tensor.dimension() > 1 && tensor.shape(-2) == words.size();
    recording_->tensor(section, name, tensor, {.rows = is_of_words ? words : std::vector<std::string>()});
  }
}

void NotebookReport::show(const std::string& section, const std::string& name, const xgrad::Ids& ids) {
  if (recording_) recording_->tensor(section, name, ids);
}

void NotebookReport::show_loss(const std::string& name, const xgrad::Variable<float>& loss,
                               const std::vector<xgrad::NamedParameter<float>>& parameters,
                               const std::vector<std::vector<std::string>>& sequences) {
  if (!recording_) return;
  const std::string section = "Forward and backward: " + name;
  show(section, {{"loss", loss}});
  show(section, parameters);
  report_->step(0).recorded({name, sequences}, *recording_, loss, parameters);
}

void NotebookReport::write() {
  if (!report_) return;
  recording_.reset();
  report_->write(path_);
  apps::tell_where_it_is(path_);
}

std::string quoted(const std::vector<std::string>& words) {
  std::string text;
  for (const std::string& word : words) text += (text.empty() ? "'" : ", '") + word + "'";
  return "[" + text + "]";
}

void print_gradients(const std::vector<xgrad::NamedParameter<float>>& gradients) {
  for (const auto& [name, gradient] : gradients)
    std::cout << "\ngradient of " << name << ":\n" << gradient << '\n';
}

void print_leaf_gradients(const std::vector<xgrad::NamedParameter<float>>& leaves) {
  for (const auto& [name, leaf] : leaves) print_gradients({{name, leaf.grad()}});
}

xgrad::Variable<double> in_double(const xgrad::Variable<float>& x) {
  return xgrad::Variable<double>(xt::cast<double>(x.value()), true);
}

void load_in_double(const xgrad::Module<double>& module, const xgrad::StateDict<float>& weights) {
  xgrad::StateDict<double> state;
  for (const auto& [name, array] : weights) state[name] = xt::cast<double>(array);
  module.load_state_dict(state);
}

bool report_gradcheck(const xgrad::Variable<float>& printed, const xgrad::CheckedFunction& loss,
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

bool report_same(const std::string& module, const xgrad::Variable<double>& steps,
                 const xgrad::Variable<double>& output) {
  const bool same = xt::amax(xt::abs(steps.value() - output.value()))() < 1e-12;
  std::cout << "\nthe library's " << module << (same ? " gives the same output" : " gives another output")
            << '\n';
  return same;
}

}  // namespace examples
