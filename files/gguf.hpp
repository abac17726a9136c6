#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "../base/file.hpp"
#include "../models/module.hpp"
#include "tensor_view.hpp"

namespace xgrad {

/// Types of the values in a GGUF file, with their numbers in it.
enum class GgufType : std::uint32_t {
  UINT8,
  INT8,
  UINT16,
  INT16,
  UINT32,
  INT32,
  FLOAT32,
  BOOL,
  STRING,
  ARRAY,
  UINT64,
  INT64,
  FLOAT64
};

/// "UINT32".
std::string to_string(GgufType type);

/// A value of a GGUF file's metadata: a view of the file. Accessors throw FileError for a value of another
/// type or range: `model.gguf: key "llama.block_count" must be a whole number from 1 to 1000, got STRING
/// "many"`.
class GgufValue {
 public:
  /// Of the file that `subject` names, "model.gguf: key \"llama.block_count\"". Arrays have the type of their
  /// elements and their number.
  GgufValue(std::string subject, GgufType type, std::span<const std::byte> bytes, bool is_array = false,
            std::size_t size = 1)
      : subject_(std::move(subject)), type_(type), bytes_(bytes), is_array_(is_array), size_(size) {}

  /// The type, of an array that of its elements.
  GgufType type() const { return type_; }
  bool is_array() const { return is_array_; }
  /// The number of elements of an array, else 1.
  std::size_t size() const { return size_; }

  /// An integer of any type.
  std::int64_t integer(std::int64_t low, std::int64_t high) const;
  /// A float or an integer; a FLOAT32 is widened.
  double number() const;
  bool flag() const;
  /// The bytes of a STRING, which should be UTF-8, but may be anything.
  std::string_view text() const;

  /// The elements of an array.
  std::vector<std::int64_t> integers() const;
  std::vector<double> numbers() const;
  std::vector<bool> flags() const;
  std::vector<std::string_view> texts() const;

  /// The type and the value, of a long text or array its beginning: `UINT32 5`, `ARRAY of 2 STRING: "a",
  /// "b"`.
  std::string description() const;

  /// Throws FileError: the file and the key, then "must be `expected`, got " and this value.
  [[noreturn]] void refuse(std::string_view expected) const;

 private:
  std::string subject_;
  GgufType type_;
  std::span<const std::byte> bytes_;
  bool is_array_;
  std::size_t size_;
};

/// A GGUF file of version 3, or 2, which differs in nothing that is read here, mapped into memory: metadata,
/// and tensors of any type in its list, also those that to_array does not convert. Opening it validates all
/// but the numbers of the tensors and the encoding of texts; memory is bounded by the size of the file.
/// https://github.com/ggml-org/ggml/blob/master/docs/gguf.md
class GgufFile {
 public:
  /// Throws FileError, which names the key or the tensor, for a file that violates the format, for arrays of
  /// arrays, for big-endian numbers, and for tensors that overlap.
  explicit GgufFile(const std::string& path);

  /// In the order of the file, with shapes as PyTorch has them: the last axis is contiguous, which the file
  /// lists first. Valid for the lifetime of this object.
  const std::vector<TensorView>& tensors() const& { return tensors_; }
  const std::vector<TensorView>& tensors() && = delete;

  /// Keys and values in the order of the file; valid for the lifetime of this object.
  const std::vector<std::pair<std::string, GgufValue>>& metadata() const& { return metadata_; }
  const std::vector<std::pair<std::string, GgufValue>>& metadata() && = delete;

  /// The value of a key; null if it is missing.
  const GgufValue* find(std::string_view key) const&;
  /// find() for a required key. Throws FileError if it is missing.
  const GgufValue& at(std::string_view key) const&;

  /// Gives the memory of a tensor that has been copied back to the system; it may be read again.
  void release(const TensorView& tensor) const { file_.release(tensor.bytes); }

  /// Throws FileError if the file was written or cut since it was opened, as MappedFile tells. Call it after
  /// tensors or values were read.
  void throw_if_changed() const { file_.throw_if_changed(); }

 private:
  std::string path_;
  MappedFile file_;
  std::vector<TensorView> tensors_;
  std::vector<std::pair<std::string, GgufValue>> metadata_;
};

/// Whether a path is a file that begins as GGUF files do, or is called so: "model.gguf". Throws FileError for
/// a file that cannot be read.
bool is_gguf(const std::string& path);

/// All tensors of a file by their names, converted to T as to_array does. Throws FileError for a broken file,
/// and for tensors of a type that to_array does not convert.
template <class T>
StateDict<T> load_gguf(const std::string& path);

}  // namespace xgrad
