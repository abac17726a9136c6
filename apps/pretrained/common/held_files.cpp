#include "held_files.hpp"

#include <filesystem>

#include <xgrad/base/error.hpp>

#include "../../common/temporary_folder.hpp"

namespace apps {

HeldFiles::HeldFiles(const std::string& folder, const std::function<void(const std::string&)>& write) {
  xgrad::detail::make_folder(folder);
  const TemporaryFolder hidden(folder);
  try {
    write(hidden.path());
  } catch (const xgrad::FileError& error) {
    std::string what = error.what();  // of the file as the user knows it
    if (what.starts_with(hidden.path())) what.replace(0, hidden.path().size(), folder);
    throw xgrad::FileError(what);
  }
  for (const auto& entry : std::filesystem::directory_iterator(hidden.path())) {
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
