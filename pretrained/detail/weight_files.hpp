#pragma once

#include <deque>
#include <string>
#include <variant>
#include <vector>

#include "../../files/safetensors.hpp"
#include "../../files/torch_file.hpp"

// Not installed: the files of a folder that hold weights.

namespace xgrad::pretrained::detail {

enum class WeightFormat { safetensors, torch };

/// A file of weights in either format.
class WeightFile {
 public:
  /// Throws FileError.
  WeightFile(std::string path, WeightFormat format);

  const std::string& path() const { return path_; }
  const std::vector<TensorView>& tensors() const;

  /// A tensor of this file as T, converted in pieces, so that the file's memory is given back as it is read.
  /// Throws FileError for other types, and for a number that is nan or infinite, also as T.
  template <class T>
  Array<T> array(const TensorView& tensor) const;

  /// Gives the memory of a part of the file that has been read back to the system.
  void release(const TensorView& tensor) const;

 private:
  std::string path_;
  std::variant<SafetensorsFile, TorchFile> file_;
};

/// Opens the first of these that the folder has, in the order of transformers: model.safetensors, the files
/// listed in model.safetensors.index.json, pytorch_model.bin, those in pytorch_model.bin.index.json. Throws
/// FileError.
void open_weight_files(const std::string& folder, std::deque<WeightFile>& files);

}  // namespace xgrad::pretrained::detail
