#pragma once

#include <stdlib.h>
#include <unistd.h>

#include <cerrno>
#include <filesystem>
#include <string>
#include <system_error>

namespace bench {

/// An empty file that is deleted at the end, or the folder that has been made in its place.
class TemporaryFile {
 public:
  TemporaryFile() : path_((std::filesystem::temp_directory_path() / "xgrad_bench_XXXXXX").string()) {
    const int file = mkstemp(path_.data());
    if (file < 0) throw std::system_error(errno, std::generic_category(), path_);
    close(file);
  }
  TemporaryFile(const TemporaryFile&) = delete;
  TemporaryFile& operator=(const TemporaryFile&) = delete;
  ~TemporaryFile() { std::filesystem::remove_all(path_); }

  const std::string& path() const { return path_; }

 private:
  std::string path_;
};

}  // namespace bench
