#pragma once

// Not installed: what is done with the files of a model's folder.

#include <cstddef>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace xgrad::pretrained::detail {

/// Files of a folder as they were when it was read, to be written beside a model that is saved.
class CopiedFiles {
 public:
  CopiedFiles() = default;

  /// Reads those of `names` that are there. Throws FileError.
  CopiedFiles(const std::string& folder, std::span<const std::string> names);

  /// Writes each as an AtomicFile, and makes the folders that it is in. Throws FileError.
  void write(const std::string& folder) const;

 private:
  std::vector<std::pair<std::string, std::vector<std::byte>>> files_;
};

/// Whether there is anything of that path.
bool exists(const std::string& path);

/// Writes a file as an AtomicFile. Throws FileError.
void write_file(const std::string& path, std::span<const std::byte> bytes);
inline void write_file(const std::string& path, std::string_view text) {
  write_file(path, std::as_bytes(std::span(text)));
}

}  // namespace xgrad::pretrained::detail
