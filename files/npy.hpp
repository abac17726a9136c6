#pragma once

#include <string>
#include <vector>

#include "../base/file.hpp"
#include "../models/module.hpp"
#include "tensor_view.hpp"

namespace xgrad {

/// An npy file of NumPy's format, version 1 to 3: one array of bool, integers, float16, float32 or float64,
/// of either byte order, row- or column-major. Python objects (pickles) are never read.
/// https://numpy.org/doc/stable/reference/generated/numpy.lib.format.html
class NpyFile {
 public:
  /// Throws FileError for a file that violates the format, whose length differs from its header, or of other
  /// element types.
  explicit NpyFile(const std::string& path);

  /// The array, without a name; valid for the lifetime of this object.
  const TensorView& tensor() const& { return tensor_; }
  const TensorView& tensor() && = delete;

  /// Throws FileError if the file was written or cut since it was opened, as MappedFile tells. Call it after
  /// bytes of the array were read.
  void throw_if_changed() const { file_.throw_if_changed(); }

 private:
  MappedFile file_;
  std::vector<std::byte> reordered_;
  TensorView tensor_;
};

/// An array of an npz file whose elements are no numbers, such as texts or Python objects.
struct OtherArray {
  std::string name, reason;
};

/// An npz file: a zip archive, stored or deflated, of npy files.
/// https://numpy.org/doc/stable/reference/generated/numpy.savez.html
class NpzFile {
 public:
  /// Throws FileError for a broken archive or a broken npy file in it, and for entries that are not npy
  /// files.
  explicit NpzFile(const std::string& path);

  /// In the order of the archive, with names without ".npy"; valid for the lifetime of this object.
  const std::vector<TensorView>& tensors() const& { return tensors_; }
  const std::vector<TensorView>& tensors() && = delete;

  /// The arrays that cannot be read, with the error of each.
  const std::vector<OtherArray>& others() const { return others_; }

 private:
  void read(const std::string& path, std::span<const std::byte> bytes);

  std::vector<std::vector<std::byte>> contents_;
  std::vector<TensorView> tensors_;
  std::vector<OtherArray> others_;
};

/// The array of an npy file as float, double, std::int64_t (Ids) or bool (Mask), converted as `to_array`
/// does. Throws FileError.
template <class T>
Array<T> load_npy(const std::string& path);

/// Writes an npy file of version 1.0, as an AtomicFile. Throws FileError.
template <class T>
void save_npy(const Array<T>& array, const std::string& path);

/// Writes an npy file of version 1.0 row by row, so that neither all rows need to be in memory nor their
/// number to be known, as an AtomicFile.
template <class T>
class NpyWriter {
 public:
  /// `row` is the shape of a row: the array has the shape (rows, row...). Throws FileError.
  NpyWriter(const std::string& path, const Shape& row);

  /// Appends rows (n, row...). Throws ShapeError, and FileError: the rows before remain.
  void append(const Array<T>& rows);

  /// The number of rows.
  std::size_t rows() const { return rows_; }

  /// Puts the file into place. Call once. Throws FileError.
  void commit();

  /// Puts the file at another path on the same file system instead, such as one for a part of the rows.
  /// Throws FileError.
  void commit_as(const std::string& path);

 private:
  std::string header() const;
  void complete();

  AtomicFile file_;
  Shape row_;
  std::size_t header_size_, row_bytes_, rows_ = 0;
};

/// The arrays of an npz file by name, converted as `to_array` does. Throws FileError, also for an array of
/// others().
template <class T>
StateDict<T> load_npz(const std::string& path);

/// Writes an npz file without compression, as an AtomicFile; equal arrays give equal bytes. Throws FileError,
/// and ValueError for no arrays.
template <class T>
void save_npz(const StateDict<T>& arrays, const std::string& path);

}  // namespace xgrad
