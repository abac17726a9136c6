#include "folder.hpp"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <filesystem>
#include <string_view>
#include <system_error>
#include <utility>
#include <vector>

#include "detail/system/folder_names.hpp"
#include "detail/system/retried.hpp"
#include "detail/system/temporary_files.hpp"
#include "error.hpp"
#include "file.hpp"

namespace xgrad {
namespace {

namespace fs = std::filesystem;
using detail::Descriptor, detail::error_text, detail::fail;

/// In a folder whose files are being replaced: those that are new. The folder's files are complete with them.
constexpr std::string_view complete_name = ".xgrad-complete";

/// Whether without this file no program takes what is in a folder for a model.
bool is_head(const fs::path& name) { return name == "config.json" || name.extension() == ".onnx"; }

[[noreturn]] void fail_to_write(const std::string& path, int error) {
  fail<FileError>(path, ": cannot be written: ", error_text(error));
}

std::error_code last_error() { return {errno, std::system_category()}; }

bool is_there(const fs::path& path) {
  struct stat status;
  return ::lstat(path.c_str(), &status) == 0;
}

/// Whether it is a folder, and no link to one.
bool is_real_folder(const fs::path& path) {
  struct stat status;
  return ::lstat(path.c_str(), &status) == 0 && S_ISDIR(status.st_mode);
}

/// The files of a folder in the order of their names, but for heads, which are the last ones; none of a
/// folder that is not there.
std::vector<fs::path> names_in(const fs::path& folder) {
  std::error_code error;
  const std::vector<std::string> listed = detail::names_in(folder.string(), error);
  std::vector<fs::path> names(listed.begin(), listed.end());
  if (error && error != std::errc::no_such_file_or_directory)
    fail<FileError>(folder.string(), ": cannot be read: ", error.message());
  std::sort(names.begin(), names.end(), [](const fs::path& a, const fs::path& b) {
    return std::pair(is_head(a), a.string()) < std::pair(is_head(b), b.string());
  });
  return names;
}

/// Flushes all files and folders in a folder, and the folder.
void flush_all(const fs::path& folder) {
  for (const fs::path& name : names_in(folder)) {
    const fs::path path = folder / name;
    if (is_real_folder(path)) {
      flush_all(path);
      continue;
    }
    const Descriptor file(path.string(), O_RDONLY | O_NOFOLLOW | O_NONBLOCK);
    if (file.number() < 0 || detail::flush_to_disk(file.number()) != 0) fail_to_write(path.string(), errno);
  }
  if (!detail::flush_folder(folder.string())) fail_to_write(folder.string(), errno);
}

/// Throws FileError if files of `to` cannot be replaced by those of `from`, which get their permissions. What
/// a link leads to is not replaced, but the link.
void prepare_files(const fs::path& from, const fs::path& to) {
  for (const fs::path& name : names_in(from)) {
    const fs::path made = from / name, replaced = to / name;
    struct stat status;
    if (::lstat(replaced.c_str(), &status) != 0 || S_ISLNK(status.st_mode)) continue;
    const std::string path = replaced.string();
    if (is_real_folder(made) != S_ISDIR(status.st_mode))
      fail<FileError>(path, ": cannot be written: it is ", S_ISDIR(status.st_mode) ? "a" : "no", " folder");
    if (!S_ISDIR(status.st_mode) && !S_ISREG(status.st_mode))
      fail<FileError>(path, ": cannot be written: it is no regular file");
    // Another writer may have removed it since.
    if (::access(path.c_str(), W_OK) != 0 && errno != ENOENT) fail_to_write(path, errno);
    if (S_ISREG(status.st_mode)) {
      ::chmod(made.c_str(), status.st_mode & 07777);  // as far as it is allowed
    } else {
      prepare_files(made, replaced);
    }
  }
}

/// Moves all files in `from` to `to`, in whose place they are. Another process may be doing the same.
std::error_code move_files(const fs::path& from, const fs::path& to) {
  for (const fs::path& name : names_in(from)) {
    const fs::path made = from / name, replaced = to / name;
    std::error_code error;
    if (is_real_folder(made) && is_real_folder(replaced)) {
      error = move_files(made, replaced);
      if (!error && ::rmdir(made.c_str()) != 0) error = last_error();
    } else {
      if (is_real_folder(made)) ::unlink(replaced.c_str());  // a link, if there is something
      if (::rename(made.c_str(), replaced.c_str()) != 0) error = last_error();
    }
    if (error && error != std::errc::no_such_file_or_directory) return error;
  }
  return detail::flush_folder(to.string()) ? std::error_code() : last_error();
}

/// Replaces the files of a folder by those that are complete.
void replace_files(const std::string& folder) {
  const fs::path complete = fs::path(folder) / complete_name;
  for (const fs::path& name : names_in(complete))
    if (is_head(name)) ::unlink((fs::path(folder) / name).c_str());
  std::error_code error = move_files(complete, folder);
  // Another writer's folder may have taken the place of the empty one.
  if (!error && ::rmdir(complete.c_str()) != 0 && errno != ENOTEMPTY && errno != EEXIST) error = last_error();
  if (error && error != std::errc::no_such_file_or_directory)
    fail<FileError>(folder, ": its new files are complete in ", complete.string(),
                    ", and cannot be moved to their places: ", error.message());
}

/// The text with `from` replaced by `to` wherever it is.
std::string with_path(std::string text, const std::string& from, const std::string& to) {
  for (std::size_t at = text.find(from); at != text.npos; at = text.find(from, at + to.size()))
    text.replace(at, from.size(), to);
  return text;
}

/// The folder that is written, until it is complete.
class Staging {
 public:
  explicit Staging(const std::string& folder) : folder_(folder) {
    std::error_code error;
    target_ = fs::weakly_canonical(folder, error);
    if (error || folder.empty()) target_ = folder;
    if (!target_.has_filename()) target_ = target_.parent_path();
    const bool replaces = fs::is_directory(target_, error);
    if (replaces) {
      complete_folder(target_.string());
    } else if (is_there(target_) || target_.empty()) {
      detail::make_folder(folder);  // throws
    }
    // In the folder itself, so that it need not be allowed to write beside it, and may be a mount point.
    const std::string parent = replaces ? target_.string() : detail::folder_of(target_.string());
    detail::make_folder(parent);
    detail::remove_stale_files(parent);
    const detail::Temporary made = detail::new_temporary_folder(parent);
    if (made.descriptor < 0) fail_to_write(folder, errno);
    path_ = made.path;
    descriptor_ = made.descriptor;
  }

  Staging(const Staging&) = delete;
  Staging& operator=(const Staging&) = delete;

  ~Staging() {
    if (!is_committed_) detail::remove_folder(path_.c_str());
    ::close(descriptor_);  // and with it the lock
  }

  const std::string& path() const { return path_; }

  void commit() {
    flush_all(path_);
    if (is_placed()) {
      if (!detail::flush_folder(detail::folder_of(target_.string()))) fail_to_write(folder_, errno);
      return;
    }
    prepare_files(path_, folder_);
    while (::rename(path_.c_str(), (target_ / complete_name).c_str()) != 0) {
      if (errno != ENOTEMPTY && errno != EEXIST) fail_to_write(folder_, errno);
      complete_folder(target_.string());  // of another writer
    }
    is_committed_ = true;
    if (!detail::flush_folder(target_.string())) fail_to_write(folder_, errno);
    replace_files(target_.string());
  }

 private:
  /// Makes it the folder, if there is none.
  bool is_placed() {
    if (fs::path(path_).parent_path() == target_) return false;
    is_committed_ = ::rename(path_.c_str(), target_.c_str()) == 0;
    if (!is_committed_ && errno != ENOTEMPTY && errno != EEXIST) fail_to_write(folder_, errno);
    return is_committed_;  // false: another writer was faster
  }

  std::string folder_, path_;
  fs::path target_;
  int descriptor_ = -1;
  bool is_committed_ = false;
};

}  // namespace

void write_folder(const std::string& folder, const std::function<void(const std::string&)>& write) {
  if (detail::is_temporary_name(fs::path(folder).filename().string())) return write(folder);
  Staging staging(folder);
  try {
    write(staging.path());
    staging.commit();
  } catch (const FileError& error) {
    throw FileError(with_path(error.what(), staging.path(), folder));
  }
}

void complete_folder(const std::string& folder) {
  const fs::path complete = fs::path(folder) / complete_name;
  struct stat opened, named;
  while (is_there(complete)) {
    // One process at a time, where folders can be locked: the writer is the first one.
    const Descriptor lock(complete.string(), O_RDONLY | O_DIRECTORY | O_NOFOLLOW);
    if (lock.number() < 0 && errno == ENOENT) return;
    if (lock.number() >= 0) {
      detail::retried([&] { return ::flock(lock.number(), LOCK_EX); });
      // While it was waited for, its files have come to their places, and it may be another writer's now.
      if (::fstat(lock.number(), &opened) != 0 || ::lstat(complete.c_str(), &named) != 0 ||
          named.st_dev != opened.st_dev || named.st_ino != opened.st_ino)
        continue;
    }
    return replace_files(folder);
  }
}

}  // namespace xgrad
