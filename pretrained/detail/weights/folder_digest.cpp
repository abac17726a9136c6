#include "folder_digest.hpp"

#include <algorithm>
#include <array>
#include <filesystem>
#include <set>
#include <system_error>

#include "../../../base/detail/bytes/digest.hpp"
#include "../../../base/detail/system/folder_names.hpp"
#include "../../../base/error.hpp"
#include "../../../base/file.hpp"
#include "weight_files.hpp"

namespace xgrad::pretrained::detail {
namespace {

namespace fs = std::filesystem;

/// The regular files in a folder, not in those below.
std::vector<fs::path> regular_files(const fs::path& folder) {
  std::vector<fs::path> files;
  for (const std::string& name : xgrad::detail::names_in(folder.string())) {
    std::error_code ignored;  // such as of a link to nothing
    if (fs::is_regular_file(folder / name, ignored)) files.push_back(folder / name);
  }
  return files;
}

/// Whether a file at the top of the folder may belong to the tokenizer or describe the model.
bool describes(const fs::path& file) {
  const fs::path end = file.extension();
  return end == ".json" || end == ".txt" || end == ".model";
}

}  // namespace

std::string digest_of_folder(const std::string& folder, std::span<const std::string> files_of_modules) {
  std::set<fs::path> files;
  for (const fs::path& file : regular_files(folder)) {
    if (describes(file)) files.insert(file);
  }
  for (const std::string& name : files_of_modules) {
    const fs::path module = fs::path(name).parent_path();
    if (module.empty()) continue;
    const std::vector<fs::path> more = regular_files(folder / module);
    files.insert(more.begin(), more.end());
  }
  std::deque<WeightFile> weights;
  open_weight_files(folder, weights);
  for (const WeightFile& file : weights) files.insert(file.path());

  std::uint64_t digest = 0;
  for (const fs::path& path : files) {
    const std::string name = path.lexically_relative(folder).generic_string();
    const MappedFile file(path.string());
    digest = xgrad::detail::xxh64(std::as_bytes(std::span(name)), digest);
    digest = xgrad::detail::xxh64(file.bytes(), digest);
    file.throw_if_changed();
  }
  return xgrad::detail::hexadecimal(digest);
}

}  // namespace xgrad::pretrained::detail
