#include "folder_files.hpp"

#include <filesystem>

#include "../../base/error.hpp"
#include "../../base/file.hpp"

namespace xgrad::pretrained::detail {

CopiedFiles::CopiedFiles(const std::string& folder, std::span<const std::string> names) {
  for (const std::string& name : names) {
    const std::string path = xgrad::detail::join({folder, "/", name});
    if (!exists(path)) continue;
    const MappedFile file(path);
    files_.emplace_back(name, std::vector<std::byte>(file.bytes().begin(), file.bytes().end()));
  }
}

void CopiedFiles::write(const std::string& folder) const {
  for (const auto& [name, bytes] : files_) {
    const std::string path = xgrad::detail::join({folder, "/", name});
    xgrad::detail::make_folder(std::filesystem::path(path).parent_path().string());
    write_file(path, bytes);
  }
}

bool exists(const std::string& path) {
  std::error_code error;
  return std::filesystem::exists(path, error);
}

void refuse_pickle(const std::string& folder) {
  if (exists(folder + "/pytorch_model.bin"))
    xgrad::detail::fail<FileError>(
        folder,
        ": must hold model.safetensors, got pytorch_model.bin, a pickle, which can run arbitrary code; ",
        "save it from Python with model.save_pretrained(folder, safe_serialization=True)");
}

void write_file(const std::string& path, std::span<const std::byte> bytes) {
  AtomicFile file(path);
  file.write(bytes);
  file.commit();
}

}  // namespace xgrad::pretrained::detail
