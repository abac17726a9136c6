#pragma once

#include <filesystem>
#include <string>

namespace apps {

/// An empty hidden folder inside another one, removed with what it has got at the end.
class TemporaryFolder {
 public:
  /// Throws xgrad::FileError if it cannot be made.
  explicit TemporaryFolder(const std::string& parent = std::filesystem::temp_directory_path().string());
  TemporaryFolder(const TemporaryFolder&) = delete;
  TemporaryFolder& operator=(const TemporaryFolder&) = delete;
  ~TemporaryFolder();

  const std::string& path() const { return path_; }

 private:
  std::string path_;
};

}  // namespace apps
