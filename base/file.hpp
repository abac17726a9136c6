#pragma once

#include <signal.h>
#include <sys/types.h>

#include <cstddef>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <type_traits>

namespace xgrad {

/// A regular file, mapped into memory for the lifetime of the object. Replacing the file by renaming, as
/// AtomicFile does, does not affect the mapping; bytes that another process overwrites or cuts off change,
/// and those that cannot be read any more are zeros. Whoever has read bytes calls throw_if_changed() before
/// using what they say.
///
/// The first object installs a handler for SIGBUS, which the system sends for bytes that cannot be read. It
/// leaves all other SIGBUS to the handler before it. A program that installs one later ends where such bytes
/// are read, unless its handler calls the one before.
class MappedFile {
 public:
  /// Throws FileError if the path cannot be opened or is not a regular file.
  explicit MappedFile(const std::string& path);

  std::span<const std::byte> bytes() const&;
  std::span<const std::byte> bytes() && = delete;

  /// Gives the memory of these bytes back to the system, which reads them again when they are used. Bytes
  /// that are not the file's are left alone.
  void release(std::span<const std::byte> bytes) const;

  /// Whether the file was written or cut since it was opened, as its size and its time of modification tell,
  /// or bytes of it could not be read.
  bool is_changed() const { return !change().empty(); }

  /// Throws FileError if is_changed(): `model.gguf: must not change while it is read, got 3 bytes instead of
  /// 1000`.
  void throw_if_changed() const;

  /// Whether the path leads to another file by now, or to none.
  bool is_replaced() const;

 private:
  struct Mapping;
  struct Unmap {
    void operator()(const Mapping* mapping) const noexcept;
  };

  std::string change() const;  // empty if there is none

  std::unique_ptr<const Mapping, Unmap> mapping_;
};

/// Writes a file atomically: to a hidden temporary file in the same folder, which is flushed to the disk and
/// renamed into place. Until then, and on failure, the existing file stays; on failure the temporary file is
/// removed. Follows symbolic links; a replaced file keeps its permissions.
///
/// A killed process leaves its temporary file. The first AtomicFile that another process opens in the folder
/// removes it: a writer locks its file during its lifetime.
class AtomicFile {
 public:
  /// Throws FileError for a path that cannot be written, or is an existing file other than a regular one.
  explicit AtomicFile(const std::string& path);
  AtomicFile(const AtomicFile&) = delete;
  AtomicFile& operator=(const AtomicFile&) = delete;
  ~AtomicFile();

  /// Appends bytes. Throws FileError.
  void write(std::span<const std::byte> bytes);

  /// Overwrites bytes that have been written, from the place `begin` on. Throws FileError.
  void overwrite(std::size_t begin, std::span<const std::byte> bytes);

  /// Removes what is behind the first `size` bytes, such as the part of a write that a full disk has left.
  /// Throws FileError.
  void cut(std::size_t size);

  /// Renames the file into place. Call once, after the last write. Throws FileError.
  void commit();

  /// Renames the file to another path on the same file system instead, which replaces a regular file there.
  /// Throws FileError.
  void commit_as(const std::string& path);

 private:
  /// The permissions of the file that this one replaces. Throws FileError for one that cannot be replaced.
  std::optional<mode_t> replaced_mode() const;
  [[noreturn]] void fail(int error) const;

  std::string path_, target_, temporary_;
  int descriptor_ = -1;   // -1 after commit()
  std::size_t size_ = 0;  // without what a write that failed has left
};

/// Lock of a run on a file that it writes repeatedly, such as its checkpoint: two runs with one file would
/// overwrite each other's work. The system releases it when the process ends, normally or not; it is the lock
/// (flock) of an empty hidden file beside it, ".NAME.lock", which a killed process leaves for reuse. On a
/// file system without locks, it always succeeds.
class FileLock {
 public:
  /// Throws FileError if it is held already, by any process, or if the folder cannot be written.
  explicit FileLock(const std::string& path);
  FileLock(const FileLock&) = delete;
  FileLock& operator=(const FileLock&) = delete;
  ~FileLock();

 private:
  std::string lock_path_;
  int descriptor_ = -1;
};

namespace detail {

/// What read() returns, which reads a file that can tell whether it has changed. Throws FileError if it has,
/// also in place of what read() throws.
template <class File, class F>
auto read_unchanged(const File& file, const F& read) -> decltype(read()) {
  try {
    if constexpr (std::is_void_v<decltype(read())>) {
      read();
      file.throw_if_changed();
    } else {
      auto result = read();
      file.throw_if_changed();
      return result;
    }
  } catch (...) {
    file.throw_if_changed();
    throw;
  }
}

/// Creates a folder and its missing parents. Throws FileError.
void make_folder(const std::string& path);

/// For the lifetime of the object, a write beyond the process's limit on file sizes fails with an error;
/// otherwise the system sends a signal that ends the process.
class SizeLimitIsAnError {
 public:
  SizeLimitIsAnError();
  SizeLimitIsAnError(const SizeLimitIsAnError&) = delete;
  SizeLimitIsAnError& operator=(const SizeLimitIsAnError&) = delete;
  ~SizeLimitIsAnError();

 private:
  sigset_t signal_, before_;
};

}  // namespace detail
}  // namespace xgrad
