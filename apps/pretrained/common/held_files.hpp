#pragma once

// Files that are saved together with a model.

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include <xgrad/base/file.hpp>

namespace apps {

/// Small files of a folder, such as a tokenizer's, that are written in full and held back until commit(): if
/// they or a model that is saved in between cannot be written, the folder has its old files.
class HeldFiles {
 public:
  /// write(other) writes the files to another folder. Makes the folder. Throws xgrad::FileError.
  HeldFiles(const std::string& folder, const std::function<void(const std::string&)>& write);

  /// Puts the files in place. Throws xgrad::FileError.
  void commit();

 private:
  std::vector<std::unique_ptr<xgrad::AtomicFile>> files_;
};

}  // namespace apps
