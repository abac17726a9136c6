#include "temporary_files.hpp"

#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <ctime>
#include <filesystem>
#include <fstream>
#include <mutex>
#include <set>
#include <system_error>

#include "folder_names.hpp"
#include "retried.hpp"

namespace xgrad::detail {
namespace {

constexpr std::string_view temporary_prefix = ".xgrad-";
constexpr std::size_t boot_digits = 8;
constexpr std::time_t seconds_per_day = std::time_t{24} * 60 * 60;

/// A name for this start of this machine, the same in all of its containers: 8 hexadecimal digits.
const std::string& boot_name() {
  static const std::string name = [] {
    std::string id;
    std::ifstream("/proc/sys/kernel/random/boot_id") >> id;  // a random UUID
    id.resize(boot_digits, '0');
    return id;
  }();
  return name;
}

/// Removes a temporary file or folder if its writer is dead. Whenever that is uncertain, it stays.
void remove_if_stale(const std::string& path, bool of_this_boot) {
  struct stat opened, named;
  if (::lstat(path.c_str(), &named) != 0) return;
  const bool is_folder = S_ISDIR(named.st_mode);
  // NFS locks only what can be written, which folders cannot.
  const Descriptor file(path, (is_folder ? O_RDONLY | O_DIRECTORY : O_RDWR) | O_NOFOLLOW | O_NONBLOCK);
  if (file.number() < 0) return;
  const bool is_locked = try_to_lock(file.number()) == 0;
  if (!is_locked && (!is_folder || errno == EWOULDBLOCK)) return;
  if (::fstat(file.number(), &opened) != 0 || (!is_folder && !S_ISREG(opened.st_mode))) return;
  // On another machine, or before this one was started again: without shared locks only its age tells.
  if (!(of_this_boot && is_locked) && std::time(nullptr) - opened.st_mtime < seconds_per_day) return;
  // While it was being opened, its writer may have renamed it, and a new writer may have taken the name.
  if (::lstat(path.c_str(), &named) != 0 || named.st_dev != opened.st_dev || named.st_ino != opened.st_ino)
    return;
  if (is_folder)
    remove_folder(path.c_str());
  else
    ::unlink(path.c_str());
}

/// Makes something with a temporary name: make(path) gives its descriptor, or -1.
template <class Make>
Temporary new_temporary(const std::string& folder, const Make& make) {
  static std::atomic<unsigned> count = 0;
  const std::string first_part =
      std::string(temporary_prefix) + boot_name() + "-" + std::to_string(::getpid());
  for (;;) {
    Temporary made{(std::filesystem::path(folder) / (first_part + "-" + std::to_string(count++))).string()};
    made.descriptor = make(made.path);
    if (made.descriptor < 0 && errno == EEXIST) continue;
    if (made.descriptor < 0) return made;
    // Another process may have found it before it was locked, and may be removing it. A file system without
    // locks is no reason not to save.
    struct stat status;
    const bool taken = try_to_lock(made.descriptor) != 0 && errno == EWOULDBLOCK;
    if (!taken && ::lstat(made.path.c_str(), &status) == 0) return made;
    ::close(made.descriptor);
  }
}

}  // namespace

std::string error_text(int error) { return std::system_category().message(error); }

int open_file(const std::string& path, int flags, mode_t mode) {
  return retried([&] { return ::open(path.c_str(), flags | O_CLOEXEC, mode); });
}

int try_to_lock(int file) {
  return retried([&] { return ::flock(file, LOCK_EX | LOCK_NB); });
}

int flush_to_disk(int file) {
  return retried([&] { return ::fsync(file); });
}

bool flush_folder(const std::string& path) {
  const Descriptor folder(path, O_RDONLY | O_DIRECTORY);
  return folder.number() < 0 || flush_to_disk(folder.number()) == 0 || errno != EIO;
}

Descriptor::~Descriptor() {
  if (number_ >= 0) ::close(number_);
}

std::string folder_of(const std::string& path) {
  const std::filesystem::path folder = std::filesystem::path(path).parent_path();
  return folder.empty() ? "." : folder.string();
}

bool is_temporary_name(std::string_view name) {
  if (!name.starts_with(temporary_prefix)) return false;
  name.remove_prefix(temporary_prefix.size());
  constexpr std::string_view digits = "0123456789", hexadecimal = "0123456789abcdef";
  if (name.find_first_not_of(hexadecimal) != boot_digits || name[boot_digits] != '-') return false;
  name.remove_prefix(boot_digits + 1);
  const std::size_t dash = name.find_first_not_of(digits);
  return dash != 0 && dash != name.npos && name[dash] == '-' && dash + 1 < name.size() &&
         name.find_first_not_of(digits, dash + 1) == name.npos;
}

Temporary new_temporary_file(const std::string& folder) {
  return new_temporary(
      folder, [](const std::string& path) { return open_file(path, O_WRONLY | O_CREAT | O_EXCL, 0666); });
}

Temporary new_temporary_folder(const std::string& folder) {
  return new_temporary(folder, [](const std::string& path) {
    if (::mkdir(path.c_str(), 0777) != 0) return -1;
    const int descriptor = open_file(path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW);
    if (descriptor < 0) {
      const int error = errno;
      ::rmdir(path.c_str());
      errno = error == ENOENT ? EEXIST : error;  // removed by another process, as it was not locked yet
    }
    return descriptor;
  });
}

void remove_stale_files(const std::string& folder) {
  static std::mutex mutex;
  static std::set<std::string> done;
  {
    std::error_code error;
    const std::lock_guard lock(mutex);
    if (!done.insert(std::filesystem::absolute(folder, error).string()).second) return;
  }
  std::error_code error;
  for (const std::string& name : names_in(folder, error)) {
    if (!is_temporary_name(name)) continue;
    const bool of_this_boot = name.compare(temporary_prefix.size(), boot_digits, boot_name()) == 0;
    remove_if_stale((std::filesystem::path(folder) / name).string(), of_this_boot);
  }
}

}  // namespace xgrad::detail
