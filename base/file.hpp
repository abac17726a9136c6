#pragma once

#include <signal.h>

#include <cstddef>
#include <memory>
#include <span>
#include <string>

namespace xgrad {

/// A regular file, mapped into memory and readable as long as this object lives. A program that replaces the
/// file by renaming, as AtomicFile does, changes nothing here; one that shortens the file in place makes the
/// next read beyond its new end fail with SIGBUS.
class MappedFile {
 public:
  /// Throws FileError if the path cannot be opened or is not a regular file.
  explicit MappedFile(const std::string& path);

  std::span<const std::byte> bytes() const { return {first_.get(), first_.get_deleter().size}; }

 private:
  struct Unmap {
    std::size_t size;
    void operator()(const std::byte* first) const noexcept;
  };

  std::unique_ptr<const std::byte[], Unmap> first_{nullptr, Unmap{0}};
};

/// A file that appears whole or not at all: it is written to a hidden temporary file in the same folder,
/// flushed to the disk and renamed into place. Until then, and when anything fails, the file that was there
/// stays, and the temporary one is removed. Symbolic links are followed; a file that is replaced keeps its
/// permissions.
///
/// A process that is killed leaves its temporary file. The first AtomicFile that another process opens in the
/// folder removes it: the file is locked as long as its writer lives.
class AtomicFile {
 public:
  /// Throws FileError for a path that cannot be written, or that exists and is not a regular file.
  explicit AtomicFile(const std::string& path);
  AtomicFile(const AtomicFile&) = delete;
  AtomicFile& operator=(const AtomicFile&) = delete;
  ~AtomicFile();

  /// Appends. Throws FileError.
  void write(std::span<const std::byte> bytes);

  /// Renames the file into place. Call it once, after the last write. Throws FileError.
  void commit();

 private:
  void open_temporary();
  [[noreturn]] void fail(int error) const;

  std::string path_, target_, temporary_;
  int descriptor_ = -1;  // -1 after commit()
};

/// Taken by a run for a file that it writes again and again, such as its checkpoint: two runs with one file
/// would undo each other's work. The system releases it when the process ends, however it ends; it is the
/// lock (flock) of an empty hidden file beside, ".NAME.lock", which a killed process leaves for the next one
/// to use. Where a file system has no locks, nothing is refused.
class FileLock {
 public:
  /// Throws FileError if another one of any process holds it, or if the folder cannot be written.
  explicit FileLock(const std::string& path);
  FileLock(const FileLock&) = delete;
  FileLock& operator=(const FileLock&) = delete;
  ~FileLock();

 private:
  std::string lock_path_;
  int descriptor_ = -1;
};

namespace detail {

/// Makes a folder and those above it, unless they are there. Throws FileError.
void make_folder(const std::string& path);

/// While it lives, a write beyond the process's limit on file sizes fails with an error; without it the
/// system sends a signal that ends the process.
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
