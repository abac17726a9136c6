// Lists what a safetensors, GGUF, torch, npy, npz or ONNX file holds
#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <limits>
#include <optional>
#include <string>
#include <type_traits>
#include <vector>

#include <xgrad/base/detail/text/json_tree.hpp>
#include <xgrad/files.hpp>
#include <xgrad/onnx.hpp>
#include <xgrad/xgrad.hpp>

#include "common/columns.hpp"
#include "common/command_line.hpp"
#include "common/program.hpp"

using xgrad::DType, xgrad::TensorView;

namespace {

/// The least and the largest number of a tensor, and how many are nan.
struct Range {
  std::string least = "-", largest = "-", nans = "-";
};

template <class T>
std::string text_of(T number) {
  if constexpr (std::is_integral_v<T>) return std::to_string(number);
  char text[32];
  std::snprintf(text, sizeof text, "%.6g", static_cast<double>(number));
  return text;
}

/// The least and the largest of the numbers that were added.
template <class T>
struct Extremes {
  std::optional<T> least = {}, largest = {};
  std::size_t nans = 0;

  void add(T number) {
    if (number != number) {
      ++nans;
      return;
    }
    least = std::min(number, least.value_or(number));
    largest = std::max(number, largest.value_or(number));
  }

  Range range() const {
    if (!least) return {.nans = std::to_string(nans)};
    return {text_of(*least), text_of(*largest), std::to_string(nans)};
  }
};

/// The range of value(element) of all elements, which are stored as Stored.
template <class Stored, class Value>
Range range_of(const TensorView& tensor, Value value) {
  Extremes<decltype(value(Stored{}))> extremes;
  for (std::size_t at = 0; at < tensor.bytes.size(); at += sizeof(Stored)) {
    Stored stored;
    std::memcpy(&stored, tensor.bytes.data() + at, sizeof stored);
    extremes.add(value(stored));
  }
  return extremes.range();
}

template <class T>
Range range_of(const TensorView& tensor) {
  return range_of<T>(tensor, [](T number) { return number; });
}

/// Complex numbers have no order, but can be nan.
Range range_of_complex(const TensorView& tensor) {
  using Complex = std::array<float, 2>;
  Range range = range_of<Complex>(tensor, [](const Complex& number) {
    return std::isnan(number[0]) || std::isnan(number[1]) ? std::numeric_limits<float>::quiet_NaN() : 0.0F;
  });
  range.least = range.largest = "-";
  return range;
}

/// In parts, so that they need not be in memory as floats.
Range range_of_blocks(const TensorView& tensor) {
  constexpr std::size_t most = std::size_t{1} << 16;
  const std::size_t count = xgrad::element_count(tensor.shape);
  Extremes<float> extremes;
  for (std::size_t begin = 0; begin < count; begin += most) {
    const xgrad::Array<float> part =
        xgrad::to_array<float>(elements_of(tensor, begin, std::min(most, count - begin)));
    for (const float number : part) extremes.add(number);
  }
  return extremes.range();
}

Range range_of(const TensorView& tensor) {
  switch (tensor.dtype) {
    case DType::F64:
      return range_of<double>(tensor);
    case DType::F32:
      return range_of<float>(tensor);
    case DType::F16:
      return range_of<std::uint16_t>(tensor, xgrad::half_to_float);
    case DType::BF16:
      return range_of<std::uint16_t>(tensor, xgrad::bfloat16_to_float);
    case DType::F8_E4M3:
    case DType::F8_E5M2:
    case DType::F8_E4M3FNUZ:
    case DType::F8_E5M2FNUZ:
    case DType::F8_E8M0:
      return range_of<std::uint8_t>(
          tensor, [&](std::uint8_t bits) { return xgrad::float8_to_float(tensor.dtype, bits); });
    case DType::I64:
      return range_of<std::int64_t>(tensor);
    case DType::I32:
      return range_of<std::int32_t>(tensor);
    case DType::I16:
      return range_of<std::int16_t>(tensor);
    case DType::I8:
      return range_of<std::int8_t>(tensor);
    case DType::U64:
      return range_of<std::uint64_t>(tensor);
    case DType::U32:
      return range_of<std::uint32_t>(tensor);
    case DType::U16:
      return range_of<std::uint16_t>(tensor);
    case DType::U8:
      return range_of<std::uint8_t>(tensor);
    case DType::BOOL:
      return range_of<std::uint8_t>(tensor, [](std::uint8_t byte) { return byte != 0; });
    case DType::C64:
      return range_of_complex(tensor);
    default:  // the format does not say in which order the bits of F4 and F6 are packed
      if (is_of_safetensors(tensor.dtype) || tensor.dtype > DType::MXFP4) return {};
      return range_of_blocks(tensor);
  }
}

/// The text as in JSON: on one line, and without control characters for the terminal.
std::string in_quotes(const std::string& text) { return xgrad::detail::JsonTree(text).dump(); }

/// The same without the quotes.
std::string escaped(const std::string& text) {
  const std::string quoted = in_quotes(text);
  return quoted.substr(1, quoted.size() - 2);
}

std::string count_of(std::size_t count, const char* thing) {
  return std::to_string(count) + " " + thing + (count == 1 ? "" : "s");
}

void print_table(const std::vector<std::vector<std::string>>& rows, std::size_t left_columns) {
  std::vector<std::size_t> widths(rows.front().size());
  for (const auto& row : rows) {
    for (std::size_t i = 0; i < row.size(); ++i) widths[i] = std::max(widths[i], apps::width_of(row[i]));
  }
  for (const auto& row : rows) {
    std::string line;
    for (std::size_t i = 0; i < row.size(); ++i) {
      if (i > 0) line += "  ";
      line += i < left_columns ? apps::on_the_left(row[i], widths[i]) : apps::on_the_right(row[i], widths[i]);
    }
    line.erase(line.find_last_not_of(' ') + 1);
    std::puts(line.c_str());
  }
}

void print(const std::vector<TensorView>& tensors, const xgrad::Metadata& metadata) {
  std::vector<std::vector<std::string>> rows{{"name", "dtype", "shape", "min", "max", "nan"}};
  std::size_t elements = 0, bytes = 0;
  for (const TensorView& tensor : tensors) {
    const Range range = range_of(tensor);
    rows.push_back({escaped(tensor.name), to_string(tensor.dtype), xgrad::to_string(tensor.shape),
                    range.least, range.largest, range.nans});
    elements += xgrad::element_count(tensor.shape);
    bytes += tensor.bytes.size();
  }
  print_table(rows, 3);
  std::printf("%s, %s, %s\n", count_of(tensors.size(), "tensor").c_str(),
              count_of(elements, "element").c_str(), count_of(bytes, "byte").c_str());
  for (const auto& [key, value] : metadata)
    std::printf("metadata %s: %s\n", in_quotes(key).c_str(), in_quotes(value).c_str());
}

/// "(batch, 16)", with ? for what the file does not say.
std::string shape_of(const xgrad::onnx::ValueDescription& value) {
  if (!value.shape) return "?";
  std::string text;
  for (const auto& [fixed, name] : *value.shape) {
    text += text.empty() ? "" : ", ";
    text += fixed ? std::to_string(*fixed) : name.empty() ? "?" : escaped(name);
  }
  return "(" + text + ")";
}

void print_values(const char* what, const std::vector<xgrad::onnx::ValueDescription>& values) {
  std::vector<std::vector<std::string>> rows{{what, "type", "shape"}};
  for (const auto& value : values) rows.push_back({escaped(value.name), value.type, shape_of(value)});
  print_table(rows, 3);
  std::puts("");
}

void inspect_onnx(const std::string& path) {
  const xgrad::onnx::Description file = xgrad::onnx::describe(path);
  print_values("input", file.inputs);
  print_values("output", file.outputs);
  std::vector<std::vector<std::string>> rows{{"operator", "count"}};
  for (const auto& [name, count] : file.operators) rows.push_back({escaped(name), std::to_string(count)});
  print_table(rows, 1);
  std::puts("");
  try {
    const xgrad::onnx::Graph<float> graph(path);
    std::vector<TensorView> parameters;
    for (const auto& [name, parameter] : graph.named_parameters())
      parameters.push_back(xgrad::view_of(name, parameter.value()));
    print(parameters, {});
  } catch (const xgrad::FileError& error) {
    rows = {{"tensor", "type", "shape"}};
    for (const auto& tensor : file.tensors)
      rows.push_back({escaped(tensor.name), tensor.type, xgrad::to_string(tensor.shape)});
    print_table(rows, 3);
    std::printf("\nnot computed by xgrad, %s\n", error.what());
  }
}

void inspect_gguf(const std::string& path) {
  const xgrad::GgufFile file(path);
  print(file.tensors(), {});
  for (const auto& [key, value] : file.metadata())
    std::printf("metadata %s: %s\n", in_quotes(key).c_str(), value.description().c_str());
  file.throw_if_changed();
}

void inspect_safetensors(const std::string& path) {
  { const xgrad::MappedFile readable(path); }  // one that cannot be read is of no format
  try {
    const xgrad::SafetensorsFile file(path);
    print(file.tensors(), file.metadata());
    file.throw_if_changed();
  } catch (const xgrad::FileError& error) {
    if (path.ends_with(".safetensors")) throw;
    throw xgrad::FileError(std::string(error.what()) +
                           " (it was read as safetensors, as its name ends in no other format's ending)");
  }
}

bool is_torch_file(const std::string& path) {
  return path.ends_with(".bin") || path.ends_with(".pt") || path.ends_with(".pth");
}

void inspect(const std::string& path) {
  if (path.ends_with(".onnx")) return inspect_onnx(path);
  if (path.ends_with(".gguf")) return inspect_gguf(path);
  if (path.ends_with(".npy")) {
    const xgrad::NpyFile file(path);
    print({file.tensor()}, {});
    file.throw_if_changed();
  } else if (path.ends_with(".npz")) {
    const xgrad::NpzFile file(path);
    print(file.tensors(), {});
    for (const auto& [name, reason] : file.others())
      std::printf("not shown, %s: %s\n", in_quotes(name).c_str(), reason.c_str());
  } else if (is_torch_file(path)) {
    const xgrad::TorchFile file(path);
    print(file.tensors(), {});
    file.throw_if_changed();
  } else {
    inspect_safetensors(path);
  }
}

int run_command(int argc, char** argv) {
  std::string path;
  apps::CommandLine app(
      "Lists the contents of a file: names, types, shapes, the least and the largest number, the number of "
      "nan, and metadata; inputs, outputs, operators and parameters (all as F32) of an ONNX file, or its "
      "tensors if xgrad cannot compute it. Complex numbers, the floats of 4 and 6 bits and blocks that xgrad "
      "does not read have no range.");
  app.add_option("file", path,
                 "An .npy, an .npz, an .onnx, a .gguf, a safetensors file, or torch's .bin, .pt or .pth")
      ->required()
      ->path(apps::PathUse::input);
  if (const std::optional<int> exit_code = app.parse(argc, argv)) return *exit_code;
  inspect(path);
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  return apps::run_program("inspect", [&] { return run_command(argc, argv); });
}
