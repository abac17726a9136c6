#pragma once

// Not installed: files of a folder.

#include <cstddef>
#include <map>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace xgrad::detail {

/// Contents of files of a folder, to be written into another one.
class CopiedFiles {
 public:
  CopiedFiles() = default;

  /// Reads the existing files among `names`. Throws FileError.
  CopiedFiles(const std::string& folder, std::span<const std::string> names);

  /// Files with these names and texts, without the others among `names`.
  CopiedFiles(const std::map<std::string, std::string>& texts, std::span<const std::string> names);

  /// Writes them as write_folder() does. Throws FileError, also as check() does.
  void write(const std::string& folder) const;

  /// Throws FileError if the folder holds one of `names` that is not among the files: it would stay, and be
  /// read with them.
  void check(const std::string& folder) const;

 private:
  std::vector<std::string> absent_;
  std::vector<std::pair<std::string, std::string>> files_;  // names and contents
};

/// Throws FileError if the folder holds one of these files, which are not written with what is saved there.
void refuse_leftovers(const std::string& folder, std::span<const std::string> names);

/// Whether the path exists.
bool exists(const std::string& path);

/// The content of a regular file. Throws FileError, also if the file changes meanwhile.
std::string read_file(const std::string& path);

/// Writes a file as an AtomicFile. Throws FileError.
void write_file(const std::string& path, std::span<const std::byte> bytes);
inline void write_file(const std::string& path, std::string_view text) {
  write_file(path, std::as_bytes(std::span<const char>(text.data(), text.size())));
}

}  // namespace xgrad::detail
