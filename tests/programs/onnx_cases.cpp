// Computes ONNX's own test cases for single operators, and compares with what they expect
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <iostream>
#include <limits>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include <xgrad/onnx.hpp>
#include <xgrad/onnx/detail/operators.hpp>
#include <xgrad/xgrad.hpp>

#include "../../apps/common/command_line.hpp"
#include "../../apps/common/program.hpp"

namespace {

using xgrad::Variable, xgrad::onnx::Value, xgrad::onnx::Values, xgrad::onnx::shape_of;
namespace fs = std::filesystem;

/// Graphs of operators, or of operator sets, that xgrad::onnx does not have.
struct Unsupported : std::runtime_error {
  using std::runtime_error::runtime_error;
};

Value<float> read(const fs::path& file) {
  return xgrad::onnx::detail::value_of<float>(xgrad::onnx::detail::read_tensor(file.string()));
}

bool is_close(float got, float expected) {
  const bool both_nan = std::isnan(got) && std::isnan(expected);
  return both_nan || got == expected || std::abs(got - expected) <= 1e-7F + 1e-3F * std::abs(expected);
}

/// What is wrong with a result; empty if nothing is. Tolerances are those of ONNX's own runner.
std::string difference(const Value<float>& got, const Value<float>& expected) {
  if (got.index() != expected.index()) return "another type";
  if (shape_of<float>(got) != shape_of<float>(expected)) {
    return "shape " + xgrad::to_string(shape_of<float>(got)) + " instead of " +
           xgrad::to_string(shape_of<float>(expected));
  }
  return std::visit(
      [&]<class A>(const A& x) -> std::string {
        const A& y = std::get<A>(expected);
        for (std::size_t i = 0; i < x.size(); ++i) {
          if constexpr (std::is_same_v<A, Variable<float>>) {
            if (!is_close(x.value().data()[i], y.value().data()[i])) {
              return std::to_string(x.value().data()[i]) + " instead of " +
                     std::to_string(y.value().data()[i]);
            }
          } else if (x.data()[i] != y.data()[i]) {
            return std::to_string(x.data()[i]) + " instead of " + std::to_string(y.data()[i]);
          }
        }
        return "";
      },
      got);
}

/// What is wrong with a case; empty if nothing is.
std::string run_case(const fs::path& folder) {
  std::optional<xgrad::onnx::Graph<float>> graph;
  try {
    graph.emplace((folder / "model.onnx").string());
  } catch (const xgrad::FileError& error) {
    const std::string what = error.what(), text = what.substr(what.find(": ") + 2);
    if (text.starts_with("operators that are not supported") || text.starts_with("operator sets"))
      throw Unsupported(text);
    return text;
  }
  for (int set = 0; fs::exists(folder / ("test_data_set_" + std::to_string(set))); ++set) {
    const fs::path data = folder / ("test_data_set_" + std::to_string(set));
    const auto file = [&](const char* kind, std::size_t i) {
      return data / (kind + std::to_string(i) + ".pb");
    };
    Values<float> given;
    for (std::size_t i = 0; i < graph->inputs().size(); ++i)
      given.emplace(graph->inputs()[i].name, read(file("input_", i)));
    xgrad::manual_seed(0);  // some drop elements
    const Values<float> results = (*graph)(given);
    for (std::size_t i = 0; i < graph->outputs().size(); ++i) {
      const std::string wrong = difference(results.at(graph->outputs()[i].name), read(file("output_", i)));
      if (!wrong.empty()) return wrong;
    }
  }
  return "";
}

/// An exception's text, without the path of the folder that it may begin with.
std::string text_of(const std::exception& error, const fs::path& folder) {
  std::string text = error.what();
  const std::string path = folder.string() + "/";
  if (text.starts_with(path)) text.erase(0, path.size());
  return text;
}

/// The lines "NAME: what is wrong" of a file, in which others that begin with # give reasons.
std::map<std::string, std::string> read_expected(const std::string& path) {
  std::map<std::string, std::string> expected;
  std::ifstream file(path);
  for (std::string line; std::getline(file, line);) {
    const std::size_t end = line.find(": ");
    if (end != line.npos && line[0] != '#') expected[line.substr(0, end)] = line.substr(end + 2);
  }
  return expected;
}

}  // namespace

int main(int argc, char** argv) {
  std::string root, known;
  std::size_t at_least = 1;
  apps::CommandLine app(
      "Computes ONNX's test cases, those of operators that are supported, and compares the results.");
  app.add_option("DIR", root, "folder of the cases, such as /usr/share/libonnx-testdata/data/node")
      ->required()
      ->check(apps::existing_folder());
  app.add_option("--expected", known,
                 "file with lines \"CASE: what is wrong\" of those that are known to fail")
      ->check(apps::existing_file());
  app.add_option("--at-least", at_least, "how many have to pass")
      ->check(apps::in_range<std::size_t>(0, 100000));
  if (const std::optional<int> exit_code = app.parse(argc, argv)) return *exit_code;
  return apps::run_program("onnx_cases", [&] {
    std::map<std::string, std::string> expected = read_expected(known);
    std::vector<fs::path> folders;
    for (const auto& entry : fs::directory_iterator(root)) folders.push_back(entry.path());
    std::ranges::sort(folders);
    std::size_t passed = 0, known_to_fail = 0, failed = 0, unsupported = 0;
    for (const fs::path& folder : folders) {
      const std::string name = folder.filename().string();
      std::string wrong;
      try {
        wrong = run_case(folder);
      } catch (const Unsupported&) {
        ++unsupported;
        continue;
      } catch (const std::exception& error) {
        wrong = text_of(error, folder);
      }
      const auto known_case = expected.find(name);
      const std::string should_be = known_case == expected.end() ? "" : known_case->second;
      if (wrong != should_be) {
        ++failed;
        std::cout << "FAILED  " << name << ": " << (wrong.empty() ? "nothing is wrong any more" : wrong)
                  << '\n';
      } else {
        ++(wrong.empty() ? passed : known_to_fail);
      }
    }
    std::cout << passed << " passed, " << failed << " failed, " << known_to_fail << " known to fail, "
              << unsupported << " of operators or operator sets that are not supported\n";
    return failed > 0 || passed < at_least ? 1 : 0;
  });
}
