#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "../base/file.hpp"
#include "../models/module.hpp"
#include "tensor_view.hpp"

namespace xgrad {

/// A state dict that torch.save has written, such as pytorch_model.bin: a zip archive (PyTorch 1.6 and later)
/// or the sequence of pickles of earlier versions, mapped into memory. The pickle is read, never run: it may
/// name tensors, their storages and dicts, and nothing else.
/// https://pytorch.org/docs/stable/notes/serialization.html
class TorchFile {
 public:
  /// Throws FileError for a broken file, and for one that has more than tensors by name: whole modules,
  /// checkpoints with a state dict inside of them, TorchScript, big-endian numbers.
  explicit TorchFile(const std::string& path);

  /// In the order of the dict; valid for the lifetime of this object. Tensors that are not stored row by row,
  /// such as transposed ones, are copied.
  const std::vector<TensorView>& tensors() const& { return tensors_; }
  const std::vector<TensorView>& tensors() && = delete;

  /// Gives the memory of a tensor that has been copied back to the system; it may be read again.
  void release(const TensorView& tensor) const { file_.release(tensor.bytes); }

  /// Throws FileError if the file was written or cut since it was opened, as MappedFile tells. Call it after
  /// bytes of tensors were read.
  void throw_if_changed() const { file_.throw_if_changed(); }

 private:
  MappedFile file_;
  std::vector<std::vector<std::byte>> copies_;
  std::vector<TensorView> tensors_;
};

/// All tensors of a file, converted to T as load_safetensors does. Throws FileError.
template <class T>
StateDict<T> load_torch(const std::string& path);

}  // namespace xgrad
