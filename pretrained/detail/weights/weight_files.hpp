#pragma once

#include <cstdint>
#include <deque>
#include <string>
#include <variant>
#include <vector>

#include "../../../files/gguf.hpp"
#include "../../../files/safetensors.hpp"
#include "../../../files/torch_file.hpp"

// Not installed: the files of a folder that hold weights.

namespace xgrad::pretrained::detail {

enum class WeightFormat { safetensors, torch, gguf };

/// A file of weights in one of the formats.
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

  /// Columns of a matrix of this file as the rows of a T array; otherwise the same.
  template <class T>
  Array<T> columns(const TensorView& matrix, std::size_t first, std::size_t count) const;

  /// The numbers of a tensor as BF16, those of this type as they are, and columns of a matrix of them.
  /// Throws FileError as array() does.
  std::vector<std::uint16_t> bits(const TensorView& tensor) const;
  std::vector<std::uint16_t> columns_as_bits(const TensorView& matrix, std::size_t first,
                                             std::size_t count) const;

  /// Gives the memory of a part of the file that has been read back to the system. Throws FileError if the
  /// file has changed.
  void release(const TensorView& tensor) const;

 private:
  /// The elements of a piece of a tensor that begins `at` elements after its first one.
  template <class T>
  void read(const TensorView& piece, std::size_t at, T* to) const;
  /// The same as BF16.
  void read_bits(const TensorView& piece, std::size_t at, std::uint16_t* to) const;
  /// Columns of a matrix, of which read_piece(piece, at, to) reads pieces.
  template <class E, class F>
  static void read_columns(const TensorView& matrix, std::size_t first, std::size_t count, E* columns,
                           const F& read_piece);
  /// Calls read_piece(piece, at) for pieces of so many elements, one after the other.
  template <class F>
  static void in_pieces(const TensorView& tensor, std::size_t most, const F& read_piece);

  std::string path_;
  std::variant<SafetensorsFile, TorchFile, GgufFile> file_;
};

/// Opens a GGUF file, or the first of these that the folder has, in the order of transformers:
/// model.safetensors, the files listed in model.safetensors.index.json, pytorch_model.bin, those in
/// pytorch_model.bin.index.json. Throws FileError.
void open_weight_files(const std::string& path, std::deque<WeightFile>& files);

}  // namespace xgrad::pretrained::detail
