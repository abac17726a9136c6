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

/// Strings stored in a file beside its tensors.
using Metadata = std::map<std::string, std::string>;

/// A safetensors file, mapped into memory. Opening it validates the whole header, not the values. The format:
/// 8 bytes for the length of a JSON header of at most 100 MB that begins with "{", the header with each
/// tensor's dtype, shape and data_offsets, and the tensors' bytes without overlaps, holes or anything else.
/// https://github.com/huggingface/safetensors#format
class SafetensorsFile {
 public:
  /// Throws FileError, which names the tensor and the field, for a file that violates the format.
  explicit SafetensorsFile(const std::string& path);

  /// Reads the bytes of a file; `name` replaces its path in errors.
  SafetensorsFile(const std::string& name, std::vector<std::byte> bytes);

  /// In the order of their bytes; valid for the lifetime of this object.
  const std::vector<TensorView>& tensors() const& { return tensors_; }
  const std::vector<TensorView>& tensors() && = delete;
  const Metadata& metadata() const& { return metadata_; }
  Metadata metadata() && { return std::move(metadata_); }

  /// Gives the memory of a tensor that has been copied back to the system; it may be read again.
  void release(const TensorView& tensor) const;

  /// Throws FileError if the file was written or cut since it was opened, as MappedFile tells. Call it after
  /// bytes of tensors were read.
  void throw_if_changed() const;

 private:
  void read(const std::string& path, std::span<const std::byte> bytes);

  std::optional<MappedFile> file_;
  std::vector<std::byte> bytes_;
  std::vector<TensorView> tensors_;
  Metadata metadata_;
};

/// All tensors of a file, for `Module::load_state_dict`; names are the same as in PyTorch. Converts
/// floats to T as to_array does. Throws FileError for a broken file, and for tensors of another dtype.
template <class T>
StateDict<T> load_safetensors(const std::string& path);

/// Writes a state dict as F32 or F64, as an AtomicFile. Throws FileError, and ValueError for names that are
/// not UTF-8.
template <class T>
void save_safetensors(const StateDict<T>& state, const std::string& path, const Metadata& metadata = {});

/// Writes tensors of any types, in the format's order (dtype, then name), as an AtomicFile. Throws FileError,
/// and ValueError for a name that is a duplicate, "__metadata__" or not UTF-8, for a type of GGUF's blocks,
/// for bytes that do not match a shape, and for a header of more than 100 MB.
void write_safetensors(std::vector<TensorView> tensors, const std::string& path,
                       const Metadata& metadata = {});

/// Writes a safetensors file whose tensors need not be in memory, as an AtomicFile: their bytes are written
/// one after the other, in pieces of any size.
class SafetensorsWriter {
 public:
  /// The names, types and shapes of the tensors, in the order of their bytes; bytes of the views are not
  /// read. Throws FileError, and ValueError as write_safetensors does.
  SafetensorsWriter(const std::vector<TensorView>& tensors, const std::string& path,
                    const Metadata& metadata = {});

  /// Appends bytes, little-endian. Throws FileError, and ValueError for more than the tensors have.
  void write(std::span<const std::byte> bytes);

  /// Puts the file into place. Call once. Throws FileError, and ValueError if bytes of the tensors are
  /// missing.
  void commit();

 private:
  SafetensorsWriter(const std::string& header, const std::string& path);

  AtomicFile file_;
  std::size_t left_ = 0;  // bytes of the tensors
};

}  // namespace xgrad
