#pragma once

#include <dirent.h>
#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <memory>
#include <string>
#include <string_view>
#include <system_error>
#include <vector>

#include "../../error.hpp"
#include "retried.hpp"

namespace xgrad::detail {

/// The names of what is in a folder, in no order; empty with an error, or if there are none. In place of
/// std::filesystem::directory_iterator: libstdc++'s ends the process where there is no memory for a name, and
/// takes a signal's interruption of opening a folder for a failure.
inline std::vector<std::string> names_in(const std::string& folder, std::error_code& error) {
  struct Close {
    void operator()(DIR* listing) const { ::closedir(listing); }
  };
  error.clear();
  std::vector<std::string> names;
  const std::unique_ptr<DIR, Close> listing(retried([&] { return ::opendir(folder.c_str()); }));
  while (listing) {
    errno = 0;
    const dirent* const entry = ::readdir(listing.get());
    if (entry == nullptr) break;
    std::string name = entry->d_name;
    if (name != "." && name != "..") names.push_back(std::move(name));
  }
  if (!listing || errno != 0) error.assign(errno, std::generic_category());
  return error ? std::vector<std::string>() : names;
}

/// The same. Throws FileError if the folder cannot be read.
inline std::vector<std::string> names_in(const std::string& folder) {
  std::error_code error;
  std::vector<std::string> names = names_in(folder, error);
  if (error) fail<FileError>(folder, ": cannot be read: ", error.message());
  return names;
}

/// Removes a folder and what is in it, as far as it can; links in it are not followed. For destructors, in
/// which std::filesystem::remove_all ends the process where there is no memory for a name.
inline void remove_folder(const char* path, int parent = AT_FDCWD) noexcept {
  const int file =
      retried([&] { return ::openat(parent, path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC); });
  if (file < 0) return;
  DIR* const listing = ::fdopendir(file);
  if (listing == nullptr) {
    ::close(file);
    return;
  }
  while (const dirent* const entry = ::readdir(listing)) {
    const std::string_view name = entry->d_name;
    if (name == "." || name == "..") continue;
    if (::unlinkat(file, entry->d_name, 0) != 0) remove_folder(entry->d_name, file);
  }
  ::closedir(listing);
  ::unlinkat(parent, path, AT_REMOVEDIR);
}

}  // namespace xgrad::detail
