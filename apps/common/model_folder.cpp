#include "model_folder.hpp"

#include <algorithm>
#include <filesystem>
#include <functional>

#include <xgrad/base/detail/folder_files.hpp>
#include <xgrad/base/detail/folder_names.hpp>
#include <xgrad/base/error.hpp>

namespace apps {
namespace {

namespace fs = std::filesystem;

std::vector<std::string> names_in(const fs::path& folder) {
  std::error_code error;
  std::vector<std::string> names = xgrad::detail::names_in(folder.string(), error);
  if (error) xgrad::detail::fail<xgrad::FileError>(folder.string(), ": cannot be read: ", error.message());
  return names;
}

/// The regular files whose names are `wanted`.
void copy_files(const fs::path& from, const fs::path& to,
                const std::function<bool(const fs::path& name)>& wanted) {
  fs::create_directories(to);
  for (const std::string& name : names_in(from)) {
    if (!fs::is_regular_file(from / name) || !wanted(name)) continue;
    xgrad::detail::write_file((to / name).string(), xgrad::detail::read_file((from / name).string()));
  }
}

}  // namespace

void copy_model_texts(const std::string& from, const std::string& to,
                      std::initializer_list<std::string_view> except) {
  copy_files(from, to, [&](const fs::path& name) {
    const std::string text = name.string();
    const bool is_text = text.ends_with(".json") || text.ends_with(".txt") || text.ends_with(".model");
    return is_text && !text.ends_with(".index.json") &&
           std::find(except.begin(), except.end(), text) == except.end();
  });
}

void copy_module_folders(const std::string& from, const std::string& to) {
  if (!fs::exists(fs::path(from) / "modules.json")) return;
  for (const std::string& name : names_in(from)) {
    const fs::path module = fs::path(from) / name;
    if (!fs::is_directory(module) || name.front() < '0' || name.front() > '9' ||
        name.ends_with("_Transformer"))
      continue;
    copy_files(module, fs::path(to) / name, [](const fs::path&) { return true; });
  }
}

}  // namespace apps
