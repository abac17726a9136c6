#include "held_files.hpp"

#include <stdlib.h>

#include <cerrno>
#include <filesystem>
#include <system_error>

#include <xgrad/base/error.hpp>

namespace apps {
namespace {

namespace fs = std::filesystem;

/// An empty hidden folder inside another one, which is removed at the end.
class HiddenFolder {
 public:
  explicit HiddenFolder(const std::string& folder) : path_(folder + "/.xgrad-XXXXXX") {
    if (::mkdtemp(path_.data()) == nullptr)
      throw xgrad::FileError(folder + ": cannot be written: " + std::system_category().message(errno));
  }
  HiddenFolder(const HiddenFolder&) = delete;
  HiddenFolder& operator=(const HiddenFolder&) = delete;
  ~HiddenFolder() {
    std::error_code error;
    fs::remove_all(path_, error);
  }

  const std::string& path() const { return path_; }

 private:
  std::string path_;
};

}  // namespace

HeldFiles::HeldFiles(const std::string& folder, const std::function<void(const std::string&)>& write) {
  xgrad::detail::make_folder(folder);
  const HiddenFolder hidden(folder);
  try {
    write(hidden.path());
  } catch (const xgrad::FileError& error) {
    std::string what = error.what();  // of the file as the user knows it
    if (what.starts_with(hidden.path())) what.replace(0, hidden.path().size(), folder);
    throw xgrad::FileError(what);
  }
  for (const auto& entry : fs::directory_iterator(hidden.path())) {
    const xgrad::MappedFile written(entry.path().string());
    files_.push_back(std::make_unique<xgrad::AtomicFile>(folder + "/" + entry.path().filename().string()));
    files_.back()->write(written.bytes());
  }
}

void HeldFiles::commit() {
  for (const auto& file : files_) file->commit();
  files_.clear();
}

}  // namespace apps
