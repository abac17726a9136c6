// Runs an ONNX file on npy files, and prints or saves its outputs
#include <iostream>
#include <optional>
#include <stdexcept>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include <xgrad/files.hpp>
#include <xgrad/onnx.hpp>
#include <xgrad/xgrad.hpp>

#include "../common/command_line.hpp"
#include "../common/program.hpp"

using xgrad::Variable;
using xgrad::onnx::Value, xgrad::onnx::Values;

namespace {

template <class T>
void print(const std::string& name, const Value<T>& value) {
  std::cout << name << ' ' << xgrad::to_string(xgrad::onnx::shape_of<T>(value)) << '\n';
  std::visit([](const auto& array) { std::cout << xgrad::to_string(array) << '\n'; }, value);
}

template <class T>
void save(const Value<T>& value, const std::string& path) {
  if (const Variable<T>* const floats = std::get_if<Variable<T>>(&value)) {
    xgrad::save_npy(floats->value(), path);
  } else if (const xgrad::Ids* const ids = std::get_if<xgrad::Ids>(&value)) {
    xgrad::save_npy(*ids, path);
  } else {
    xgrad::save_npy(std::get<xgrad::Mask>(value), path);
  }
}

/// "NAME=FILE" in two.
std::pair<std::string, std::string> parts_of(const std::string& text) {
  const std::size_t end = text.find('=');
  return {text.substr(0, end), text.substr(end + 1)};
}

/// Computes in T, which is double for a file with numbers of double.
template <class T>
void run(const std::string& path, const std::vector<std::string>& inputs,
         const std::vector<std::string>& outputs) {
  const xgrad::onnx::Graph<T> graph(path);
  Values<T> given;
  for (const std::string& input : inputs) {
    const auto [name, file] = parts_of(input);
    const xgrad::NpyFile array(file);
    if (!given.emplace(name, xgrad::onnx::to_value<T>(array.tensor())).second)
      throw std::runtime_error("there are two files for the input " + name);
    array.throw_if_changed();
  }
  const Values<T> results = graph(given);
  for (const std::string& output : outputs) {
    const auto [name, file] = parts_of(output);
    const auto found = results.find(name);
    if (found == results.end()) throw std::runtime_error("there is no output " + name);
    save<T>(found->second, file);
  }
  if (outputs.empty())
    for (const auto& [name, value] : results) print<T>(name, value);
}

int run_command(int argc, char** argv) {
  std::string path;
  std::vector<std::string> inputs, outputs;
  const apps::Check named_file{[](const std::string& text) {
                                 const std::size_t end = text.find('=');
                                 const bool right = end != text.npos && end > 0 && end + 1 < text.size();
                                 return right ? std::string() : "must be NAME=FILE, got " + text;
                               },
                               "NAME=FILE"};
  apps::CommandLine app("Runs an ONNX file. Prints all of its outputs, or saves those that --output names.");
  app.add_option("file", path, "An .onnx file")->required()->path(apps::PathUse::input);
  app.add_option("--input", inputs, "An npy file for an input; once for each")->check(named_file);
  app.add_option("--output", outputs, "An npy file to write an output to")->check(named_file);
  if (const std::optional<int> exit_code = app.parse(argc, argv)) return *exit_code;
  const xgrad::NoGrad guard;
  std::vector<apps::NamedPath> paths{{"file", path, apps::PathUse::input}};
  for (const std::string& input : inputs)
    paths.push_back({"--input", parts_of(input).second, apps::PathUse::input});
  for (const std::string& output : outputs)
    paths.push_back({"--output", parts_of(output).second, apps::PathUse::output});
  apps::check_paths(paths);
  if (xgrad::onnx::describe(path).has_doubles) {
    run<double>(path, inputs, outputs);
  } else {
    run<float>(path, inputs, outputs);
  }
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  return apps::run_program("run_onnx", [&] { return run_command(argc, argv); });
}
