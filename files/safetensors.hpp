#pragma once

#include <cstddef>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "../base/file.hpp"
#include "../models/module.hpp"
#include "tensor_view.hpp"

namespace xgrad {

/// Texts that a file carries beside its tensors.
using Metadata = std::map<std::string, std::string>;

/// A safetensors file, mapped into memory. All of its header is checked when it is opened; the values are not
/// looked at. The format: 8 bytes for the length of a JSON header of at most 100 MB that begins with "{", the
/// header with each tensor's dtype, shape and data_offsets, and the tensors' bytes without overlaps, holes or
/// anything else. https://github.com/huggingface/safetensors#format
class SafetensorsFile {
 public:
  /// Throws FileError, which names the tensor and the field, for a file that breaks any rule of the format.
  explicit SafetensorsFile(const std::string& path);

  /// The same for the bytes of a file; `name` stands for its path in errors.
  SafetensorsFile(const std::string& name, std::vector<std::byte> bytes);

  /// In the order of their bytes; valid as long as this object lives.
  const std::vector<TensorView>& tensors() const { return tensors_; }
  const Metadata& metadata() const { return metadata_; }

 private:
  void read(const std::string& path, std::span<const std::byte> bytes);

  std::optional<MappedFile> file_;
  std::vector<std::byte> bytes_;
  std::vector<TensorView> tensors_;
  Metadata metadata_;
};

/// All tensors of a file, as `Module::load_state_dict` takes them; PyTorch's names are its names. F64, F32,
/// F16 and BF16 become T. Throws FileError for a broken file, and for tensors of another dtype.
template <class T>
StateDict<T> load_safetensors(const std::string& path);

/// Writes a state dict as F32 or F64, as an AtomicFile. Throws FileError, and ValueError for names that are
/// not UTF-8.
template <class T>
void save_safetensors(const StateDict<T>& state, const std::string& path, const Metadata& metadata = {});

/// Writes tensors of any types, in the format's own order (dtype, then name), as an AtomicFile. Throws
/// FileError, and ValueError for a name that is taken twice, "__metadata__" or not UTF-8, for bytes that do
/// not fit a shape, and for a header of more than 100 MB.
void write_safetensors(std::vector<TensorView> tensors, const std::string& path,
                       const Metadata& metadata = {});

}  // namespace xgrad
