// Computes ONNX's own test cases for single operators, and compares with what they expect
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <iostream>
#include <iterator>
#include <limits>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <xgrad/onnx.hpp>
#include <xgrad/onnx/detail/emitters/emitters.hpp>
#include <xgrad/onnx/detail/operators/operators.hpp>
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

/// What the cases of an operator show.
struct OperatorRow {
  std::size_t cases = 0;  // that pass
  bool has_ops = false, is_written = true, is_trainable = false;
};

/// Notes whether ops of xgrad run, and whether each can be exported.
class ExportWatcher : public xgrad::Watcher {
 public:
  explicit ExportWatcher(OperatorRow& row) : row_(row) {}
  void on_op(const xgrad::OpEvent<float>& event) override {
    row_.has_ops = true;
    row_.is_written = row_.is_written && xgrad::onnx::detail::has_emitter(event.op.name);
  }
  void on_op(const xgrad::OpEvent<double>&) override {}

 private:
  OperatorRow& row_;
};

/// What is wrong with a case; empty if nothing is. A row for the operator of a case of one node.
std::string run_case(const fs::path& folder, std::map<std::string, OperatorRow>& rows) {
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
    for (std::size_t i = 0; i < graph->inputs().size(); ++i) {
      Value<float> value = read(file("input_", i));
      if (const auto* const floats = std::get_if<Variable<float>>(&value))
        value = Variable<float>(floats->value(), true);
      given.emplace(graph->inputs()[i].name, std::move(value));
    }
    xgrad::manual_seed(0);  // some drop elements
    OperatorRow row;
    Values<float> results;
    {
      const ExportWatcher watcher(row);
      results = (*graph)(given);
    }
    for (std::size_t i = 0; i < graph->outputs().size(); ++i) {
      const std::string wrong = difference(results.at(graph->outputs()[i].name), read(file("output_", i)));
      if (!wrong.empty()) return wrong;
      const auto* const floats = std::get_if<Variable<float>>(&results.at(graph->outputs()[i].name));
      row.is_trainable = row.is_trainable || (floats != nullptr && floats->requires_grad());
    }
    const auto operators = graph->operators();
    if (operators.size() != 1 || operators.begin()->second != 1) continue;
    OperatorRow& all = rows[operators.begin()->first];
    ++all.cases;
    all.has_ops = all.has_ops || row.has_ops;
    all.is_written = all.is_written && row.is_written;
    all.is_trainable = all.is_trainable || row.is_trainable;
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

/// The table of a page: the operators that are read.
std::string table_of(const std::map<std::string, OperatorRow>& rows) {
  std::string table = "| Operator | Cases | Written | Trainable |\n| --- | --- | --- | --- |\n";
  const auto yes_if = [](bool is) { return is ? "yes" : "no"; };
  for (const auto& [name, maker] : xgrad::onnx::detail::operators<float>()) {
    const auto found = rows.find(std::string(name));
    const OperatorRow row = found == rows.end() ? OperatorRow() : found->second;
    table += "| " + std::string(name) + " | " + std::to_string(row.cases) + " | " +
             (row.has_ops ? yes_if(row.is_written) : "") + " | " +
             (row.cases > 0 ? yes_if(row.is_trainable) : "") + " |\n";
  }
  return table;
}

}  // namespace

int main(int argc, char** argv) {
  std::string root, known, page;
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
  app.add_option("--page", page, "page that must have the table of the operators that are read")
      ->check(apps::existing_file());
  if (const std::optional<int> exit_code = app.parse(argc, argv)) return *exit_code;
  return apps::run_program("onnx_cases", [&] {
    std::map<std::string, std::string> expected = read_expected(known);
    std::vector<fs::path> folders;
    for (const auto& entry : fs::directory_iterator(root)) folders.push_back(entry.path());
    std::ranges::sort(folders);
    std::map<std::string, OperatorRow> rows;
    std::size_t passed = 0, known_to_fail = 0, failed = 0, unsupported = 0;
    for (const fs::path& folder : folders) {
      const std::string name = folder.filename().string();
      std::string wrong;
      try {
        wrong = run_case(folder, rows);
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
    if (!page.empty()) {
      std::ifstream file(page);
      const std::string text{std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
      if (text.find(table_of(rows)) == text.npos) {
        std::cout << page << " must have this table:\n" << table_of(rows);
        ++failed;
      }
    }
    return failed > 0 || passed < at_least ? 1 : 0;
  });
}
