#pragma once

// Not installed: files and folders with temporary names, and the system's calls for them.
//
// They are named .xgrad-BOOT-PID-NUMBER. Their writers hold a lock (flock) on them, which the system releases
// when the process dies, however it dies. NFS shares the locks of files between machines, but not every
// network file system does.

#include <fcntl.h>

#include <string>
#include <string_view>

namespace xgrad::detail {

std::string error_text(int error);

/// The system's calls, which are made again when a signal interrupts them.
int open_file(const std::string& path, int flags, mode_t mode = 0);
int try_to_lock(int file);
int flush_to_disk(int file);

/// Flushes a folder: the names of its files. Not every file system can do that, and not every folder can be
/// opened, so it is false, with errno, only if the disk fails.
bool flush_folder(const std::string& path);

/// An open file or folder; number() is -1, with errno, if it cannot be opened.
class Descriptor {
 public:
  Descriptor(const std::string& path, int flags) : number_(open_file(path, flags)) {}
  Descriptor(const Descriptor&) = delete;
  Descriptor& operator=(const Descriptor&) = delete;
  ~Descriptor();
  int number() const { return number_; }

 private:
  int number_;
};

std::string folder_of(const std::string& path);

/// Whether a file or a folder is named as the temporary ones are.
bool is_temporary_name(std::string_view name);

/// A new temporary file or folder, open and locked.
struct Temporary {
  std::string path;
  int descriptor = -1;  ///< -1, with errno, if it cannot be made
};

Temporary new_temporary_file(const std::string& folder);
Temporary new_temporary_folder(const std::string& folder);

/// Removes the temporary files and folders that killed processes have left in a folder; once for each folder,
/// because programs that save many files into one should not list it every time.
void remove_stale_files(const std::string& folder);

}  // namespace xgrad::detail
