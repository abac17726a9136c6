#pragma once

// Compares GGUF files, and blocks of their types, with what gguf's Python package gave, for tests and
// programs.

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <map>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <vector>

#include <nlohmann/json.hpp>

#include <xgrad/base/error.hpp>
#include <xgrad/files/gguf.hpp>
#include <xgrad/files/safetensors.hpp>

#include "golden_result.hpp"
#include "json_file.hpp"

namespace xgrad_tests {

namespace gguf_goldens_detail {

using nlohmann::json;
using xgrad::Array, xgrad::DType, xgrad::FileError, xgrad::GgufFile, xgrad::TensorView;

template <class T>
std::span<const std::byte> bytes_of(const Array<T>& array) {
  return std::as_bytes(std::span<const T>(array.data(), array.size()));
}

/// "Q4_0" of "Q4_0.random".
inline std::optional<DType> type_of_case(const std::string& name) {
  const std::string type = name.substr(0, name.find('.'));
  for (int i = 0; i <= static_cast<int>(DType::MXFP4); ++i) {
    if (to_string(static_cast<DType>(i)) == type) return static_cast<DType>(i);
  }
  return std::nullopt;
}

/// Empty if the bytes are the same, else which element of this size differs first.
inline std::string difference(std::span<const std::byte> got, std::span<const std::byte> expected,
                              std::size_t size, const std::string& what) {
  if (got.size() != expected.size())
    return what + ": must have " + std::to_string(expected.size()) + " bytes, got " +
           std::to_string(got.size());
  const auto differing = std::mismatch(got.begin(), got.end(), expected.begin()).first;
  if (differing == got.end()) return "";
  return what + ": element " + std::to_string(static_cast<std::size_t>(differing - got.begin()) / size) +
         " differs";
}

/// Blocks become the floats that are expected, and those as double and rounded to bfloat16.
inline std::string compare_blocks(const std::string& path, DType dtype) {
  const xgrad::SafetensorsFile file(path);
  std::map<std::string, TensorView> tensors;
  for (const TensorView& tensor : file.tensors()) tensors[tensor.name] = tensor;
  const TensorView &bytes = tensors.at("bytes"), &output = tensors.at("output");
  const TensorView blocks{"blocks", dtype, output.shape, bytes.bytes};
  const Array<float> floats = xgrad::to_array<float>(blocks);
  std::string problem = difference(bytes_of(floats), output.bytes, 4, "float");
  if (problem.empty())
    problem = difference(bytes_of(xgrad::to_array<double>(blocks)), bytes_of(xgrad::to_array<double>(output)),
                         8, "double");
  if (problem.empty())
    problem =
        difference(bytes_of(xgrad::to_bfloat16(blocks)), bytes_of(xgrad::to_bfloat16(output)), 2, "bfloat16");
  if (problem.empty() && dtype == DType::BF16)
    problem = difference(bytes_of(xgrad::to_bfloat16(tensors.at("input"))), bytes.bytes, 2, "rounded");
  return problem;
}

/// The file has the tensors of the case, with their types and shapes, and all numbers are finite.
inline std::string compare_tensors(const std::string& path, const json& expected) {
  const GgufFile file(path);
  json found = json::array();
  for (const TensorView& tensor : file.tensors()) {
    found.push_back({tensor.name, to_string(tensor.dtype),
                     std::vector<std::size_t>(tensor.shape.begin(), tensor.shape.end())});
    const Array<float> floats = xgrad::to_array<float>(tensor);
    if (!std::all_of(floats.begin(), floats.end(), [](float x) { return std::isfinite(x); }))
      return "tensor " + tensor.name + " must be finite";
  }
  for (const json& tensor : list_entry(expected, "tensors")) {
    if (std::find(found.begin(), found.end(), tensor) == found.end())
      return "must have " + tensor.dump() + ", got " + found.dump();
  }
  return "";
}

/// A broken file is refused with an error that begins with its path; others are read.
inline std::string compare_verdict(const std::string& path, const std::string& verdict) {
  std::string error;
  try {
    const GgufFile file(path);
    for (const TensorView& tensor : file.tensors()) xgrad::to_array<float>(tensor);
  } catch (const FileError& refusal) {
    error = refusal.what();
  }
  if (!error.empty() && (!error.starts_with(path + ": ") || error.find('\n') != error.npos))
    return "an error must be one line that begins with the path, got " + error;
  if (verdict == "refuse" && error.empty()) return "must be refused";
  const bool may_be_refused = verdict == "refuse" || verdict == "read or refuse";
  return may_be_refused || error.empty() ? "" : "must be read, got " + error;
}

inline std::vector<GoldenResult> compare_folder(const std::filesystem::path& folder) {
  std::vector<GoldenResult> results;
  const json cases = read_json((folder / "cases.json").string());
  if (!cases.is_object()) return results;  // of other goldens
  for (auto one = cases.begin(); one != cases.end(); ++one) {
    const std::string& name = one.key();
    const json& expected = one.value();
    const std::string path = (folder / name).string();
    const auto compare = [&](const auto& f) {
      std::string problem;
      try {
        problem = f();
      } catch (const std::exception& error) {
        problem = error.what();
      }
      results.push_back({path, problem});
    };
    if (!expected.is_object()) continue;
    if (expected.contains("verdict")) {
      compare([&] { return compare_verdict(path + ".gguf", entry_as<std::string>(expected, "verdict")); });
    } else if (expected.contains("tensors")) {
      compare([&] { return compare_tensors(path + ".gguf", expected); });
    } else if (expected.contains("bytes_per_row")) {
      compare([&] {
        const std::optional<DType> dtype = type_of_case(name);
        return dtype ? compare_blocks(path + ".safetensors", *dtype) : "there is no such type";
      });
    }
  }
  return results;
}

}  // namespace gguf_goldens_detail

/// Compares the folders below `root`, or it itself, whose cases.json describes GGUF files, broken ones or
/// blocks: by files, without the models in them.
inline std::vector<GoldenResult> gguf_goldens(const std::string& root) {
  namespace fs = std::filesystem;
  std::set<fs::path> folders;
  for (const auto& file : fs::recursive_directory_iterator(root)) {
    if (file.path().filename() == "cases.json") folders.insert(file.path().parent_path());
  }
  std::vector<GoldenResult> results;
  for (const fs::path& folder : folders) {
    const std::vector<GoldenResult> of_folder = gguf_goldens_detail::compare_folder(folder);
    results.insert(results.end(), of_folder.begin(), of_folder.end());
  }
  return results;
}

}  // namespace xgrad_tests
