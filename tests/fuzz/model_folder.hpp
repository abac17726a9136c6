#pragma once

// A model's folder, of which one file is the input.

#include <fstream>
#include <map>
#include <optional>
#include <string>

#include <xgrad/base/error.hpp>

#include "input.hpp"

namespace fuzz {

/// A folder in which `name` is the InputFile, beside other files; it is removed at the end.
class ModelFolder {
 public:
  explicit ModelFolder(const std::string& name, const std::map<std::string, std::string>& others = {}) {
    path_ = (std::filesystem::temp_directory_path() / "xgrad_fuzz_XXXXXX").string();
    require(::mkdtemp(path_.data()) != nullptr, "a folder for files can be made");
    std::filesystem::create_symlink(InputFile::path(), path_ + "/" + name);
    for (const auto& [other, text] : others) std::ofstream(path_ + "/" + other, std::ios::binary) << text;
  }
  ModelFolder(const ModelFolder&) = delete;
  ModelFolder& operator=(const ModelFolder&) = delete;
  ~ModelFolder() { std::filesystem::remove_all(path_); }

  const std::string& path() const { return path_; }

 private:
  std::string path_;
};

}  // namespace fuzz
