#include "find_model.hpp"

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <string_view>

#include "../base/detail/system/folder_files.hpp"
#include "../base/detail/text/json_text.hpp"
#include "../base/error.hpp"
#include "../files/tensor_view.hpp"

namespace xgrad::pretrained {
namespace {

using xgrad::detail::fail;

/// A variable of the environment; empty if it is not set.
std::string variable(const char* name) {
  const char* const value = std::getenv(name);
  return value == nullptr ? "" : value;
}

/// The path with the user's folder for a "~" in front.
std::string expanded(const std::string& path) {
  return path == "~" || path.starts_with("~/") ? variable("HOME") + path.substr(1) : path;
}

std::string hub_cache() {
  if (const std::string cache = variable("HF_HUB_CACHE"); !cache.empty()) return expanded(cache);
  if (const std::string home = variable("HF_HOME"); !home.empty()) return expanded(home) + "/hub";
  const std::string caches = variable("XDG_CACHE_HOME");
  return expanded(caches.empty() ? "~/.cache" : caches) + "/huggingface/hub";
}

/// Whether the text can be a name of one level: of an owner, a model or a snapshot.
bool is_plain(std::string_view text) {
  const auto is_allowed = [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '-' ||
           c == '_' || c == '.';
  };
  return !text.empty() && text.size() <= 96 && text.front() != '.' && text.front() != '-' &&
         std::ranges::all_of(text, is_allowed);
}

/// "models--owner--name"; empty for what is no name of the hub.
std::string folder_in_cache(const std::string& name) {
  const std::size_t slash = name.find('/');
  if (slash == name.npos) return is_plain(name) ? "models--" + name : "";
  const std::string owner = name.substr(0, slash), model = name.substr(slash + 1);
  return is_plain(owner) && is_plain(model) ? "models--" + owner + "--" + model : "";
}

}  // namespace

std::string find_model(const std::string& name) {
  if (xgrad::detail::exists(name)) return name;
  const std::string folder = folder_in_cache(name);
  if (folder.empty()) fail<FileError>(name, ": must be the folder of a model, got no such path");
  const std::string model = hub_cache() + "/" + folder, branch = model + "/refs/main";
  if (!xgrad::detail::exists(model)) {
    std::error_code error;
    const std::string here = std::filesystem::current_path(error).string() + "/" + name;
    fail<FileError>(name,
                    ": must be the folder of a model or the name of one in the hub's cache, got neither ",
                    here, " nor ", model);
  }
  if (!xgrad::detail::exists(branch))
    fail<FileError>(name, ": is not complete in the hub's cache, as there is no ", branch);
  const std::string content = xgrad::detail::read_file(branch);
  std::string_view snapshot = content;
  while (snapshot.ends_with('\n')) snapshot.remove_suffix(1);
  if (!is_plain(snapshot))
    fail<FileError>(branch, ": must name a snapshot, got ",
                    xgrad::detail::in_quotes(std::string(snapshot.substr(0, 100))));
  const std::string path = xgrad::detail::join({model, "/snapshots/", std::string(snapshot)});
  if (!xgrad::detail::exists(path))
    fail<FileError>(name, ": is not complete in the hub's cache, as there is no ", path);
  return path;
}

}  // namespace xgrad::pretrained
