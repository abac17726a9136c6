#pragma once

// Files that change while the library reads them. changed_files.cpp replaces mmap() and madvise() for the
// whole test program; they do what they always do, and call a test's function afterwards.

#include <filesystem>
#include <functional>
#include <string>

namespace xgrad_tests {

/// Calls one function after each file that is mapped, with its path, and one after mapped memory is given
/// back to the system.
class MappingHook {
 public:
  explicit MappingHook(std::function<void(const std::string&)> mapped, std::function<void()> released = {});
  MappingHook(const MappingHook&) = delete;
  MappingHook& operator=(const MappingHook&) = delete;
  ~MappingHook();

  const std::function<void(const std::string&)> mapped;
  const std::function<void()> released;
};

/// What the error says of a file that had other sizes.
inline std::string size_message(const std::string& path, std::size_t before, std::size_t now) {
  return path + ": must not change while it is read, got " + std::to_string(now) + " bytes instead of " +
         std::to_string(before);
}

}  // namespace xgrad_tests
