// Runs an ONNX file on npy files, and prints or saves its outputs
#include <cstdint>
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

using xgrad::DType, xgrad::Variable;
using xgrad::onnx::Value, xgrad::onnx::Values;

namespace {

Value<float> load(const std::string& path) {
  const xgrad::NpyFile file(path);
  switch (file.tensor().dtype) {
    case DType::F64:
    case DType::F32:
    case DType::F16:
      return Variable<float>(xgrad::load_npy<float>(path));
    case DType::BOOL:
      return xgrad::load_npy<bool>(path);
    default:
      return xgrad::load_npy<std::int64_t>(path);
  }
}

void print(const std::string& name, const Value<float>& value) {
  std::cout << name << ' ' << xgrad::to_string(xgrad::onnx::shape_of<float>(value)) << '\n';
  std::visit([](const auto& array) { std::cout << xgrad::to_string(array) << '\n'; }, value);
}

void save(const Value<float>& value, const std::string& path) {
  if (const Variable<float>* const floats = std::get_if<Variable<float>>(&value)) {
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

}  // namespace

int main(int argc, char** argv) {
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
  return apps::run_program("run_onnx", [&] {
    const xgrad::NoGrad guard;
    std::vector<apps::NamedPath> paths{{"file", path, apps::PathUse::input}};
    for (const std::string& input : inputs)
      paths.push_back({"--input", parts_of(input).second, apps::PathUse::input});
    for (const std::string& output : outputs)
      paths.push_back({"--output", parts_of(output).second, apps::PathUse::output});
    apps::check_paths(paths);
    const xgrad::onnx::Graph<float> graph(path);
    Values<float> given;
    for (const std::string& input : inputs) {
      const auto [name, file] = parts_of(input);
      if (!given.emplace(name, load(file)).second)
        throw std::runtime_error("there are two files for the input " + name);
    }
    const Values<float> results = graph(given);
    for (const std::string& output : outputs) {
      const auto [name, file] = parts_of(output);
      const auto found = results.find(name);
      if (found == results.end()) throw std::runtime_error("there is no output " + name);
      save(found->second, file);
    }
    if (outputs.empty())
      for (const auto& [name, value] : results) print(name, value);
    return 0;
  });
}
