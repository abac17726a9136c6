#include "folder_files.hpp"

#include <filesystem>

#include "../../error.hpp"
#include "../../file.hpp"
#include "../../folder.hpp"

namespace xgrad::detail {

CopiedFiles::CopiedFiles(const std::string& folder, std::span<const std::string> names) {
  for (const std::string& name : names) {
    const std::string path = join({folder, "/", name});
    if (!exists(path)) {
      absent_.push_back(name);
      continue;
    }
    files_.emplace_back(name, read_file(path));
  }
}

CopiedFiles::CopiedFiles(const std::map<std::string, std::string>& texts,
                         std::span<const std::string> names) {
  files_.assign(texts.begin(), texts.end());
  for (const std::string& name : names)
    if (!texts.contains(name)) absent_.push_back(name);
}

void CopiedFiles::check(const std::string& folder) const { refuse_leftovers(folder, absent_); }

void CopiedFiles::write(const std::string& folder) const {
  check(folder);
  write_folder(folder, [&](const std::string& other) {
    for (const auto& [name, content] : files_) {
      const std::string path = join({other, "/", name});
      make_folder(std::filesystem::path(path).parent_path().string());
      write_file(path, content);
    }
  });
}

void refuse_leftovers(const std::string& folder, std::span<const std::string> names) {
  complete_folder(folder);
  for (const std::string& name : names) {
    const std::string path = join({folder, "/", name});
    if (exists(path))
      fail<FileError>(path,
                      ": is of another model, and would stay beside the saved files and be read with "
                      "them; remove it, or save to another folder");
  }
}

bool exists(const std::string& path) {
  std::error_code error;
  return std::filesystem::exists(path, error);
}

std::string read_file(const std::string& path) {
  const MappedFile file(path);
  std::string content(reinterpret_cast<const char*>(file.bytes().data()), file.bytes().size());
  file.throw_if_changed();
  return content;
}

void write_file(const std::string& path, std::span<const std::byte> bytes) {
  AtomicFile file(path);
  file.write(bytes);
  file.commit();
}

}  // namespace xgrad::detail
