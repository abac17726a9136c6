// Computes the ONNX files of other tools, and compares with what ONNX Runtime gives for them
#include <algorithm>
#include <cmath>
#include <cstdio>
#include <filesystem>
#include <iostream>
#include <string>
#include <type_traits>
#include <vector>

#include <xgrad/files.hpp>
#include <xgrad/onnx.hpp>
#include <xgrad/xgrad.hpp>

#include "../../apps/common/command_line.hpp"
#include "../../apps/common/program.hpp"

namespace {

using xgrad::DType, xgrad::Variable, xgrad::onnx::shape_of, xgrad::onnx::Value, xgrad::onnx::Values;
namespace fs = std::filesystem;

/// How far a result may be from another runtime's, in parts of its largest element, or of 0.01 if that is
/// larger.
double tolerance(DType dtype) {
  return dtype == DType::F64 ? 1e-12 : dtype == DType::F16 || dtype == DType::BF16 ? 2e-3 : 1e-5;
}

/// What is wrong with a result; empty if nothing is.
template <class T>
std::string difference(const Value<T>& got, const xgrad::TensorView& expected_view) {
  const Value<T> expected = xgrad::onnx::to_value<T>(expected_view);
  if (got.index() != expected.index()) return "another type";
  if (shape_of<T>(got) != shape_of<T>(expected)) {
    return "shape " + xgrad::to_string(shape_of<T>(got)) + " instead of " +
           xgrad::to_string(shape_of<T>(expected));
  }
  return std::visit(
      [&]<class A>(const A& x) -> std::string {
        const A& y = std::get<A>(expected);
        if constexpr (std::is_same_v<A, Variable<T>>) {
          double worst = 0, largest = 0.01;
          for (std::size_t i = 0; i < x.size(); ++i) {
            const double a = x.value().data()[i], b = y.value().data()[i];
            if (a == b || (std::isnan(a) && std::isnan(b))) continue;
            if (std::isnan(a) || std::isnan(b)) return std::to_string(a) + " instead of " + std::to_string(b);
            worst = std::max(worst, std::abs(a - b));
            largest = std::max(largest, std::abs(b));
          }
          if (worst <= tolerance(expected_view.dtype) * largest) return "";
          return "off by " + std::to_string(worst) + " of " + std::to_string(largest);
        } else {
          return x == y ? "" : "other elements";
        }
      },
      got);
}

/// What is wrong with the outputs of a file; empty if nothing is.
template <class T>
std::string run(const fs::path& file, const std::vector<xgrad::TensorView>& arrays) {
  const xgrad::onnx::Graph<T> graph(file.string());
  Values<T> given;
  for (const xgrad::TensorView& array : arrays) {
    if (array.name.starts_with("in.")) given.emplace(array.name.substr(3), xgrad::onnx::to_value<T>(array));
  }
  const xgrad::NoGrad guard;
  const Values<T> results = graph(given);
  for (const xgrad::TensorView& array : arrays) {
    if (!array.name.starts_with("out.")) continue;
    const std::string wrong = difference<T>(results.at(array.name.substr(4)), array);
    if (!wrong.empty()) return array.name.substr(4) + ": " + wrong;
  }
  return "";
}

}  // namespace

int main(int argc, char** argv) {
  std::string root;
  std::size_t at_least = 0;
  apps::CommandLine app(
      "Computes the files NAME.onnx of a folder and of those in it, and compares with the arrays of "
      "NAME.npz, "
      "in.X for each input and out.Y for each output.");
  app.add_option("DIR", root, "folder of the files")->required()->check(apps::existing_folder());
  app.add_option("--at-least", at_least, "how many have to load, with equal numbers")
      ->check(apps::in_range<std::size_t>(0, 100000));
  if (const std::optional<int> exit_code = app.parse(argc, argv)) return *exit_code;
  return apps::run_program("onnx_interop", [&] {
    std::vector<fs::path> files;
    for (const auto& entry : fs::recursive_directory_iterator(root)) {
      fs::path arrays = entry.path();
      if (entry.path().extension() == ".onnx" && fs::exists(arrays.replace_extension(".npz")))
        files.push_back(entry.path());
    }
    std::sort(files.begin(), files.end());
    std::size_t equal = 0, refused = 0, wrong = 0;
    for (const fs::path& file : files) {
      const std::string name = fs::relative(file, root).string();
      fs::path beside = file;
      const xgrad::NpzFile arrays(beside.replace_extension(".npz").string());
      try {
        const bool has_doubles = xgrad::onnx::describe(file.string()).has_doubles;
        const std::string what =
            has_doubles ? run<double>(file, arrays.tensors()) : run<float>(file, arrays.tensors());
        ++(what.empty() ? equal : wrong);
        if (!what.empty()) std::cout << "WRONG    " << name << ": " << what << '\n';
      } catch (const xgrad::FileError& error) {
        ++refused;
        const std::string what = error.what(), path = file.string() + ": ";
        std::cout << "refused  " << name << ": " << (what.starts_with(path) ? what.substr(path.size()) : what)
                  << '\n';
      } catch (const std::exception& error) {
        ++wrong;
        std::cout << "WRONG    " << name << ": " << error.what() << '\n';
      }
    }
    std::cout << equal << " with equal numbers, " << refused << " refused, " << wrong << " wrong\n";
    return wrong > 0 || equal < at_least ? 1 : 0;
  });
}
