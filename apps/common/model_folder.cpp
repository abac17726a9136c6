#include "model_folder.hpp"

#include <algorithm>
#include <filesystem>
#include <functional>

#include <xgrad/base/detail/system/folder_files.hpp>
#include <xgrad/base/detail/system/folder_names.hpp>
#include <xgrad/base/folder.hpp>

#include "paths.hpp"

namespace apps {
namespace {

namespace fs = std::filesystem;

/// The regular files whose names are `wanted`.
void copy_files(const fs::path& from, const fs::path& to,
                const std::function<bool(const fs::path& name)>& wanted) {
  fs::create_directories(to);
  for (const std::string& name : xgrad::detail::names_in(from.string())) {
    if (!fs::is_regular_file(from / name) || !wanted(name)) continue;
    xgrad::detail::write_file((to / name).string(), xgrad::detail::read_file((from / name).string()));
  }
}

/// Whether it is copied beside other weights.
bool is_text(std::string_view name) {
  const bool is_kind = name.ends_with(".json") || name.ends_with(".txt") || name.ends_with(".model");
  return is_kind && !name.ends_with(".index.json");
}

}  // namespace

void refuse_other_model(const std::string& from, const std::string& to,
                        std::initializer_list<std::string_view> written) {
  xgrad::complete_folder(to);
  if (!fs::is_directory(to)) return;
  std::vector<std::string> names = xgrad::detail::names_in(to);
  std::erase_if(names, [&](const std::string& name) {
    return !is_of_model(name) || std::ranges::find(written, name) != written.end() ||
           (is_text(name) && fs::is_regular_file(fs::path(from) / name));
  });
  std::sort(names.begin(), names.end());
  xgrad::detail::refuse_leftovers(to, names);
}

void copy_model_texts(const std::string& from, const std::string& to,
                      std::initializer_list<std::string_view> except) {
  copy_files(from, to, [&](const fs::path& name) {
    return is_text(name.string()) && std::find(except.begin(), except.end(), name.string()) == except.end();
  });
}

void copy_module_folders(const std::string& from, const std::string& to) {
  if (!fs::exists(fs::path(from) / "modules.json")) return;
  for (const std::string& name : xgrad::detail::names_in(from)) {
    const fs::path module = fs::path(from) / name;
    if (!fs::is_directory(module) || name.front() < '0' || name.front() > '9' ||
        name.ends_with("_Transformer"))
      continue;
    copy_files(module, fs::path(to) / name, [](const fs::path&) { return true; });
  }
}

}  // namespace apps
