#pragma once

#include <cstddef>
#include <memory>
#include <span>
#include <string>

namespace xgrad {

/// A regular file, mapped into memory to be read as long as this object lives. Programs that replace files by
/// renaming, as AtomicFile does, never disturb it; one that shortens the file meanwhile ends the process.
class MappedFile {
 public:
  /// Throws FileError for what cannot be opened, and for what is no regular file.
  explicit MappedFile(const std::string& path);

  std::span<const std::byte> bytes() const { return {first_.get(), first_.get_deleter().size}; }

 private:
  struct Unmap {
    std::size_t size;
    void operator()(const std::byte* first) const noexcept;
  };

  std::unique_ptr<const std::byte[], Unmap> first_{nullptr, Unmap{0}};
};

/// A file that appears whole or not at all: it is written beside `path`, flushed to the disk and renamed into
/// place. Until then, and when anything fails, the file that was there stays, and nothing stays beside it.
/// Symbolic links are followed; a file that is replaced keeps its permissions.
class AtomicFile {
 public:
  /// Throws FileError for a path that cannot be written, and for one that is there and no regular file.
  explicit AtomicFile(const std::string& path);
  AtomicFile(const AtomicFile&) = delete;
  AtomicFile& operator=(const AtomicFile&) = delete;
  ~AtomicFile();

  /// Appends. Throws FileError.
  void write(std::span<const std::byte> bytes);

  /// Puts the file into place; to be called once, last. Throws FileError.
  void commit();

 private:
  [[noreturn]] void fail(int error) const;

  std::string path_, target_, beside_;
  int descriptor_ = -1;  // closed after commit()
};

}  // namespace xgrad
