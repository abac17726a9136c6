#include "model_folder.hpp"

#include <algorithm>
#include <filesystem>
#include <functional>

#include <xgrad/base/file.hpp>

namespace apps {
namespace {

namespace fs = std::filesystem;

/// The regular files whose names are `wanted`, unless both folders are one.
void copy_files(const fs::path& from, const fs::path& to,
                const std::function<bool(const fs::path& name)>& wanted) {
  if (fs::exists(to) && fs::equivalent(from, to)) return;
  fs::create_directories(to);
  for (const auto& entry : fs::directory_iterator(from)) {
    const fs::path name = entry.path().filename();
    if (!entry.is_regular_file() || !wanted(name)) continue;
    const xgrad::MappedFile file(entry.path().string());
    xgrad::AtomicFile copy((to / name).string());
    copy.write(file.bytes());
    copy.commit();
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
  for (const auto& entry : fs::directory_iterator(from)) {
    const fs::path name = entry.path().filename();
    const char first = name.string().front();
    if (!entry.is_directory() || first < '0' || first > '9' || name.string().ends_with("_Transformer"))
      continue;
    copy_files(entry.path(), to / name, [](const fs::path&) { return true; });
  }
}

}  // namespace apps
