#include "paths.hpp"

#include <algorithm>
#include <array>
#include <filesystem>
#include <stdexcept>
#include <string_view>
#include <system_error>

namespace apps {
namespace {

namespace fs = std::filesystem;

/// An absolute path without links as far as it exists.
fs::path resolved(const fs::path& path) {
  std::error_code error;
  const fs::path found = fs::weakly_canonical(fs::absolute(path, error), error);
  return error ? path : found;
}

bool is_folder(const fs::path& path) {
  std::error_code error;
  return fs::is_directory(path, error);
}

/// Whether two paths are one file, which need not exist, or one folder.
bool is_same(const fs::path& a, const fs::path& b) {
  std::error_code error;
  return resolved(a) == resolved(b) || fs::equivalent(a, b, error);
}

/// Whether a file in a model's folder belongs to the model.
bool is_of_model(std::string_view name) {
  constexpr std::array<std::string_view, 12> known{"added_tokens.json",
                                                   "config.json",
                                                   "config_sentence_transformers.json",
                                                   "merges.txt",
                                                   "modules.json",
                                                   "sentencepiece.bpe.model",
                                                   "special_tokens_map.json",
                                                   "spiece.model",
                                                   "spm.model",
                                                   "tokenizer.model",
                                                   "vocab.json",
                                                   "vocab.txt"};
  const auto is_kind = [&](std::string_view begin, std::string_view end) {
    return name.starts_with(begin) && name.ends_with(end);
  };
  return std::ranges::find(known, name) != known.end() || is_kind("sentence_", "_config.json") ||
         is_kind("adapter_", "") || is_kind("tokenizer", ".json") || is_kind("model", ".safetensors") ||
         is_kind("model", ".index.json") || is_kind("pytorch_model", "");
}

/// Whether a file is one of those that an argument's folder stands for.
bool is_file_of(const fs::path& file, const NamedPath& folder) {
  const fs::path target = resolved(file);
  if (!is_same(target.parent_path(), folder.path)) return false;
  std::error_code error;
  if (folder.use == PathUse::input_folder) return fs::exists(target, error);
  return is_of_model(target.filename().string()) || is_of_model(file.filename().string());
}

/// Whether writing a file or a folder changes what the other one is.
bool overlap(const NamedPath& out, const NamedPath& other) {
  std::error_code error;
  const bool is_there = fs::exists(other.path, error);
  if (is_there && !fs::is_regular_file(other.path, error) && !is_folder(other.path))
    return false;  // a device
  if (!is_there && other.use != PathUse::output) return false;
  if (is_same(out.path, other.path)) return !is_folder(out.path);
  return is_file_of(out.path, other) || is_file_of(other.path, out);
}

}  // namespace

void check_paths(const std::vector<NamedPath>& paths) {
  for (std::size_t i = 0; i < paths.size(); ++i) {
    if (paths[i].use != PathUse::output) continue;
    for (std::size_t k = 0; k < paths.size(); ++k) {
      const NamedPath &out = paths[i], &other = paths[k];
      const bool both_are_written = other.use == PathUse::output;
      if (i == k || (both_are_written && k < i) || !overlap(out, other)) continue;
      throw std::invalid_argument(out.argument + " " + out.path + " would overwrite " +
                                  (both_are_written ? "" : "the input ") + other.argument + " " + other.path);
    }
  }
}

}  // namespace apps
