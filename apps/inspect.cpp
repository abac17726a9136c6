// Lists the tensors and the metadata of a safetensors, npy or npz file
#include <algorithm>
#include <cstdio>
#include <optional>
#include <string>
#include <type_traits>
#include <vector>

#include <CLI/CLI.hpp>
#include <nlohmann/json.hpp>
#include <xgrad/files.hpp>
#include <xgrad/xgrad.hpp>

#include "program.hpp"

using xgrad::Array, xgrad::DType, xgrad::TensorView;

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

template <class T>
Range range_of(const Array<T>& values) {
  std::optional<T> least, largest;
  std::size_t nans = 0;
  for (const T value : values) {
    if (value != value) {
      ++nans;
      continue;
    }
    least = std::min(value, least.value_or(value));
    largest = std::max(value, largest.value_or(value));
  }
  Range range;
  if (least) range = {text_of(*least), text_of(*largest)};
  range.nans = std::to_string(nans);
  return range;
}

Range range_of(const TensorView& tensor) {
  switch (tensor.dtype) {
    case DType::F64:
      return range_of(xgrad::to_array<double>(tensor));
    case DType::F32:
    case DType::F16:
    case DType::BF16:
      return range_of(xgrad::to_array<float>(tensor));
    case DType::I64:
    case DType::I32:
    case DType::I16:
    case DType::I8:
    case DType::U32:
    case DType::U16:
    case DType::U8:
      return range_of(xgrad::to_array<std::int64_t>(tensor));
    case DType::BOOL:
      return range_of(xgrad::to_array<bool>(tensor));
    default:
      return {};
  }
}

/// The text as in JSON, so that it is one line, and a terminal obeys none of it.
std::string in_quotes(const std::string& text) { return nlohmann::json(text).dump(); }

/// The same without the quotes.
std::string escaped(const std::string& text) {
  const std::string quoted = in_quotes(text);
  return quoted.substr(1, quoted.size() - 2);
}

std::string count_of(std::size_t count, const char* thing) {
  return std::to_string(count) + " " + thing + (count == 1 ? "" : "s");
}

/// The number of characters that a UTF-8 text shows.
std::size_t width_of(const std::string& text) {
  return static_cast<std::size_t>(std::ranges::count_if(text, [](char c) { return (c & 0xC0) != 0x80; }));
}

void print_table(const std::vector<std::vector<std::string>>& rows, std::size_t left_columns) {
  std::vector<std::size_t> widths(rows.front().size());
  for (const auto& row : rows) {
    for (std::size_t i = 0; i < row.size(); ++i) widths[i] = std::max(widths[i], width_of(row[i]));
  }
  for (const auto& row : rows) {
    std::string line;
    for (std::size_t i = 0; i < row.size(); ++i) {
      const std::string padding(widths[i] - width_of(row[i]), ' ');
      line += (i == 0 ? "" : "  ") + (i < left_columns ? row[i] + padding : padding + row[i]);
    }
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

void inspect(const std::string& path) {
  if (path.ends_with(".npy")) {
    const xgrad::NpyFile file(path);
    print({file.tensor()}, {});
  } else if (path.ends_with(".npz")) {
    const xgrad::NpzFile file(path);
    print(file.tensors(), {});
  } else {
    const xgrad::SafetensorsFile file(path);
    print(file.tensors(), file.metadata());
  }
}

}  // namespace

int main(int argc, char** argv) {
  std::string path;
  CLI::App app("Lists what a file holds: names, types, shapes, ranges, the numbers of nan, and metadata.");
  app.add_option("file", path, "An .npy, an .npz or a safetensors file")->required();
  if (const std::optional<int> exit_code = apps::parse(app, argc, argv)) return *exit_code;
  return apps::run_program("inspect", [&] {
    inspect(path);
    return 0;
  });
}
