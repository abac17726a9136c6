#include "folder_files.hpp"

#include "../../base/error.hpp"

namespace xgrad::pretrained::detail {

void refuse_pickle(const std::string& folder) {
  if (exists(folder + "/pytorch_model.bin"))
    xgrad::detail::fail<FileError>(
        folder,
        ": must hold model.safetensors, got pytorch_model.bin, a pickle, which can run arbitrary code; ",
        "save it from Python with model.save_pretrained(folder, safe_serialization=True)");
}

}  // namespace xgrad::pretrained::detail
