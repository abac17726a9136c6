#pragma once

#include <filesystem>
#include <functional>
#include <string>
#include <vector>

#include <nlohmann/json.hpp>

#include <xgrad/files.hpp>

#include "../files.hpp"

namespace xgrad_tests {

inline std::string model_folder(const std::string& name) { return XGRAD_PRETRAINED_DIR "/" + name; }

/// A copy of a model folder that a test may change.
class FolderCopy {
 public:
  explicit FolderCopy(const std::string& name) {
    std::filesystem::copy(model_folder(name), path(), std::filesystem::copy_options::recursive);
    for (const auto& file : std::filesystem::recursive_directory_iterator(path()))
      std::filesystem::permissions(file, std::filesystem::perms::owner_all,
                                   std::filesystem::perm_options::add);
  }

  std::string path(const std::string& file = "") const {
    return temporary_.path(file.empty() ? "model" : "model/" + file);
  }

  /// Changes config.json.
  void configure(const std::function<void(nlohmann::json&)>& change) const {
    nlohmann::json config = nlohmann::json::parse(read_bytes(path("config.json")));
    change(config);
    temporary_.write("model/config.json", config.dump());
  }

  /// Changes the tensors of model.safetensors.
  void change(const std::function<void(std::vector<xgrad::TensorView>&)>& change) const {
    const xgrad::SafetensorsFile file(path("model.safetensors"));
    std::vector<xgrad::TensorView> tensors = file.tensors();
    change(tensors);
    xgrad::write_safetensors(tensors, path("model.safetensors"));
  }

  /// Gives tensors other names; an empty one takes the tensor out.
  void rename(const std::function<std::string(const std::string&)>& name_of) const {
    change([&](std::vector<xgrad::TensorView>& tensors) {
      for (xgrad::TensorView& tensor : tensors) tensor.name = name_of(tensor.name);
      std::erase_if(tensors, [](const xgrad::TensorView& tensor) { return tensor.name.empty(); });
    });
  }

  void write(const std::string& file, const std::string& bytes) const {
    temporary_.write("model/" + file, bytes);
  }

 private:
  TemporaryFolder temporary_;
};

}  // namespace xgrad_tests
