#include "paths.hpp"

#include <algorithm>
#include <array>
#include <filesystem>
#include <stdexcept>
#include <string_view>
#include <system_error>

#include <xgrad/base/detail/system/folder_names.hpp>

namespace apps {
namespace {

namespace fs = std::filesystem;

/// An absolute path without links as far as it exists, nor a slash at its end. A link to what does not exist
/// is followed, too, as writing to it makes that file.
fs::path resolved(const fs::path& path) {
  constexpr int max_links = 40;  // as the system has it
  std::error_code error;
  fs::path found = fs::absolute(path, error);
  for (int links = 0;; ++links) {
    found = fs::weakly_canonical(found, error);
    if (error) return path;
    if (!found.has_filename()) found = found.parent_path();
    if (links == max_links || !fs::is_symlink(fs::symlink_status(found, error))) return found;
    found = found.parent_path() / fs::read_symlink(found, error);
  }
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

/// Whether a folder in a model's folder has a part of the model: 1_Pooling, 2_Dense.
bool is_module(std::string_view name) {
  return name.find('_') != name.npos && name.front() >= '0' && name.front() <= '9';
}

/// The files that an argument stands for, as far as they exist, with links followed.
std::vector<fs::path> files_of(const NamedPath& named) {
  std::error_code error;
  if (!is_folder(named.path)) return {named.path};
  std::vector<fs::path> files;
  for (const std::string& name : xgrad::detail::names_in(named.path, error)) {
    const fs::path path = fs::path(named.path) / name;
    if (fs::is_regular_file(path, error)) {
      if (named.use == PathUse::input_folder || is_of_model(name)) files.push_back(path);
    } else if (named.use != PathUse::input_folder && is_module(name) && fs::is_directory(path, error)) {
      for (const std::string& part : xgrad::detail::names_in(path.string(), error))
        if (fs::is_regular_file(path / part, error)) files.push_back(path / part);
    }
  }
  return files;
}

/// Whether a file would become one of those that an argument's folder stands for.
bool would_belong(const fs::path& file, const NamedPath& folder) {
  const fs::path target = resolved(file);
  if (folder.use == PathUse::input_folder || !is_same(target.parent_path(), folder.path)) return false;
  return is_of_model(target.filename().string()) || is_of_model(file.filename().string());
}

bool is_written(PathUse use) { return use == PathUse::output || use == PathUse::addition; }

/// Whether writing a file or a folder changes what the other one is.
bool overlap(const NamedPath& out, const NamedPath& other) {
  std::error_code error;
  const bool is_there = fs::exists(other.path, error);
  if (is_there && !fs::is_regular_file(other.path, error) && !is_folder(other.path))
    return false;  // a device
  if (!is_there && !is_written(other.use)) return false;
  if (is_same(out.path, other.path)) return out.use != PathUse::addition || !is_folder(out.path);
  if (would_belong(out.path, other) || would_belong(other.path, out)) return true;
  const std::vector<fs::path> written = files_of(out), others = files_of(other);
  return std::ranges::any_of(written, [&](const fs::path& file) {
    return std::ranges::any_of(others, [&](const fs::path& one) { return is_same(file, one); });
  });
}

}  // namespace

bool is_of_model(std::string_view name) {
  constexpr std::array<std::string_view, 15> known{"added_tokens.json",
                                                   "config.json",
                                                   "config_sentence_transformers.json",
                                                   "generation_config.json",
                                                   "merges.txt",
                                                   "modules.json",
                                                   "sentencepiece.bpe.model",
                                                   "source.spm",
                                                   "special_tokens_map.json",
                                                   "spiece.model",
                                                   "spm.model",
                                                   "target.spm",
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

void check_paths(const std::vector<NamedPath>& paths) {
  for (std::size_t i = 0; i < paths.size(); ++i) {
    if (!is_written(paths[i].use)) continue;
    for (std::size_t k = 0; k < paths.size(); ++k) {
      const NamedPath &out = paths[i], &other = paths[k];
      const bool both_are_written = is_written(other.use);
      if (i == k || (both_are_written && k < i) || !overlap(out, other)) continue;
      throw std::invalid_argument(out.argument + " " + out.path + " would overwrite " +
                                  (both_are_written ? "" : "the input ") + other.argument + " " + other.path);
    }
  }
}

}  // namespace apps
