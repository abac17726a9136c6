#pragma once

// Not installed: memory that is mapped to a file.

#include <cstddef>
#include <span>

namespace xgrad::detail {

struct MappedRange;

/// A file's bytes, mapped for reading. Where they cannot be read, since the file was shortened or its disk
/// fails, the system sends SIGBUS, which would end the process. A handler, which the first object installs,
/// puts zeros in the place of the rest of these bytes; SIGBUS of other memory goes to the handler that was
/// there before.
class MappedMemory {
 public:
  /// The first `size` bytes of an open file. Throws std::system_error.
  MappedMemory(int file, std::size_t size);
  MappedMemory(const MappedMemory&) = delete;
  MappedMemory& operator=(const MappedMemory&) = delete;
  ~MappedMemory();

  std::span<const std::byte> bytes() const { return bytes_; }

  /// Whether zeros are in the place of bytes.
  bool has_failed() const;

 private:
  std::span<const std::byte> bytes_;
  MappedRange* range_ = nullptr;
};

}  // namespace xgrad::detail
