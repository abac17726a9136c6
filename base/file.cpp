#include "file.hpp"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <ctime>
#include <filesystem>
#include <string_view>
#include <system_error>

#include "detail/system/mapped_memory.hpp"
#include "detail/system/retried.hpp"
#include "detail/system/temporary_files.hpp"
#include "error.hpp"

namespace xgrad {

using detail::Descriptor, detail::error_text, detail::folder_of, detail::open_file;

namespace {

[[noreturn]] void fail_to_read(const std::string& path, int error) {
  detail::fail<FileError>(path, ": cannot be read: ", error_text(error));
}

/// The file that `path` leads to through symbolic links, or `path` itself if there is none.
std::string without_links(const std::string& path) {
  std::error_code error;
  const std::filesystem::path target = std::filesystem::canonical(path, error);
  return error || path.empty() ? path : target.string();  // for "" libc++ finds the current folder
}

}  // namespace

void MappedFile::release(std::span<const std::byte> bytes) const {
  const std::span<const std::byte> all = this->bytes();
  if (bytes.empty() || bytes.data() < all.data() || bytes.data() >= all.data() + all.size()) return;
  const auto page = static_cast<std::size_t>(::sysconf(_SC_PAGESIZE));
  // Linux also maps the pages around one that is read, 64 KiB: those in front have come again since they were
  // released.
  const std::size_t around = std::max(page, std::size_t{1} << 16);
  const auto begin = static_cast<std::size_t>(bytes.data() - all.data());
  const std::size_t first = (begin - std::min(begin, around)) / page * page;
  // It is advice: where the system does not take it, the memory stays.
  static_cast<void>(
      ::madvise(const_cast<std::byte*>(all.data()) + first, begin - first + bytes.size(), MADV_DONTNEED));
}

struct MappedFile::Mapping {
  std::string path;
  struct stat status;  // when it was opened
  detail::MappedMemory memory;
};

void MappedFile::Unmap::operator()(const Mapping* mapping) const noexcept { delete mapping; }

MappedFile::MappedFile(const std::string& path) {
  const Descriptor file(path, O_RDONLY | O_NONBLOCK);  // a pipe must not wait for its writer
  struct stat status;
  if (file.number() < 0 || ::fstat(file.number(), &status) != 0) fail_to_read(path, errno);
  if (!S_ISREG(status.st_mode)) detail::fail<FileError>(path, ": must be a regular file");
  const auto size = static_cast<std::size_t>(status.st_size);
  if (size == 0) {
    std::byte first{};
    const ssize_t count = detail::retried([&] { return ::read(file.number(), &first, 1); });
    if (count < 0) fail_to_read(path, errno);
    if (count > 0) detail::fail<FileError>(path, ": must be a file whose size the system knows");
  }
  try {
    mapping_.reset(new Mapping{path, status, {file.number(), size}});
  } catch (const std::system_error& error) {
    fail_to_read(path, error.code().value());
  }
  // what a clone without Git LFS has in place of a large file
  constexpr std::string_view pointer = "version https://git-lfs.github.com/spec/";
  if (size > pointer.size() && std::memcmp(bytes().data(), pointer.data(), pointer.size()) == 0)
    detail::fail<FileError>(path, ": is a pointer of Git LFS, not the file; run git lfs pull in its folder");
}

std::span<const std::byte> MappedFile::bytes() const& {
  return mapping_ ? mapping_->memory.bytes() : std::span<const std::byte>();
}

bool MappedFile::is_replaced() const {
  struct stat now;
  return ::stat(mapping_->path.c_str(), &now) != 0 || now.st_dev != mapping_->status.st_dev ||
         now.st_ino != mapping_->status.st_ino;
}

std::string MappedFile::change() const {
  const struct stat& opened = mapping_->status;
  const bool has_failed = mapping_->memory.has_failed();
  struct stat now;
  const bool is_there =
      ::stat(mapping_->path.c_str(), &now) == 0 && now.st_dev == opened.st_dev && now.st_ino == opened.st_ino;
  if (!is_there && !has_failed) return "";  // a file that has no name any more is not overwritten
  std::string got;
  if (!is_there) {
    got = detail::join({"a file that ends before its ", std::to_string(opened.st_size), " bytes"});
  } else if (now.st_size != opened.st_size) {
    got = detail::join({std::to_string(now.st_size), " bytes instead of ", std::to_string(opened.st_size)});
  } else if (now.st_mtim.tv_sec != opened.st_mtim.tv_sec || now.st_mtim.tv_nsec != opened.st_mtim.tv_nsec) {
    got = "another time of modification";
  } else {
    return has_failed ? "cannot be read: " + error_text(EIO) : "";
  }
  return "must not change while it is read, got " + got;
}

void MappedFile::throw_if_changed() const {
  if (const std::string what = change(); !what.empty()) detail::fail<FileError>(mapping_->path, ": ", what);
}

AtomicFile::AtomicFile(const std::string& path) : path_(path), target_(without_links(path)) {
  const std::optional<mode_t> replaced = replaced_mode();
  const std::string folder = folder_of(target_);
  detail::remove_stale_files(folder);
  detail::Temporary temporary = detail::new_temporary_file(folder);
  if (temporary.descriptor < 0) fail(errno);
  temporary_ = std::move(temporary.path);
  descriptor_ = temporary.descriptor;
  if (replaced) ::fchmod(descriptor_, *replaced);  // as far as it is allowed
}

std::optional<mode_t> AtomicFile::replaced_mode() const {
  struct stat status;
  const bool replaces = ::stat(target_.c_str(), &status) == 0;
  if (!replaces && errno != ENOENT) fail(errno);
  if (replaces && !S_ISREG(status.st_mode))
    detail::fail<FileError>(path_, ": cannot be written: it is no regular file");
  if (replaces && ::access(target_.c_str(), W_OK) != 0 && errno != ENOENT) fail(errno);
  if (std::filesystem::path(target_).filename().empty()) fail(ENOENT);
  return replaces ? std::optional<mode_t>(status.st_mode & 07777) : std::nullopt;
}

AtomicFile::~AtomicFile() {
  if (descriptor_ < 0) return;
  ::close(descriptor_);
  ::unlink(temporary_.c_str());
}

void AtomicFile::write(std::span<const std::byte> bytes) {
  overwrite(size_, bytes);
  size_ += bytes.size();
}

void AtomicFile::overwrite(std::size_t begin, std::span<const std::byte> bytes) {
  const detail::SizeLimitIsAnError guard;
  while (!bytes.empty()) {
    const ssize_t written = detail::retried(
        [&] { return ::pwrite(descriptor_, bytes.data(), bytes.size(), static_cast<off_t>(begin)); });
    if (written < 0) fail(errno);
    begin += static_cast<std::size_t>(written);
    bytes = bytes.subspan(static_cast<std::size_t>(written));
  }
}

void AtomicFile::cut(std::size_t size) {
  if (detail::retried([&] { return ::ftruncate(descriptor_, static_cast<off_t>(size)); }) != 0) fail(errno);
  size_ = size;
}

void AtomicFile::commit_as(const std::string& path) {
  path_ = path;
  target_ = without_links(path);
  if (const std::optional<mode_t> replaced = replaced_mode()) ::fchmod(descriptor_, *replaced);
  commit();
}

void AtomicFile::commit() {
  const std::string folder =
      folder_of(target_);  // before the file is in its place: then nothing needs memory
  if (detail::flush_to_disk(descriptor_) != 0 || ::rename(temporary_.c_str(), target_.c_str()) != 0)
    fail(errno);
  ::close(descriptor_);
  descriptor_ = -1;
  if (!detail::flush_folder(folder)) fail(errno);
}

void AtomicFile::fail(int error) const {
  detail::fail<FileError>(path_, ": cannot be written: ", error_text(error));
}

FileLock::FileLock(const std::string& path) {
  const std::string target = without_links(path);
  constexpr std::size_t longest = 200;  // so that the longer name of the lock is one, too
  const std::string file_name = std::filesystem::path(target).filename().string().substr(0, longest);
  const std::string name = detail::join({".", file_name, ".lock"});
  lock_path_ = (std::filesystem::path(folder_of(target)) / name).string();
  const auto refuse = [&](const std::string& why) {
    ::close(descriptor_);
    detail::fail<FileError>(path, ": ", why);
  };
  struct stat opened, named;
  constexpr int most_tries = 100;  // not every file system has numbers of files that stay
  for (int tries = 0; tries < most_tries; ++tries) {
    if (descriptor_ >= 0) ::close(descriptor_);
    descriptor_ = open_file(lock_path_, O_RDWR | O_CREAT | O_NOFOLLOW, 0666);
    if (descriptor_ < 0) detail::fail<FileError>(path, ": cannot be locked: ", error_text(errno));
    if (detail::try_to_lock(descriptor_) != 0 && errno == EWOULDBLOCK) refuse("another run writes it");
    if (::fstat(descriptor_, &opened) != 0 || !S_ISREG(opened.st_mode) || opened.st_size != 0)
      refuse("cannot be locked: " + lock_path_ + " is not a lock");
    // Its last holder may have removed it between the two calls.
    if (::lstat(lock_path_.c_str(), &named) == 0 && named.st_dev == opened.st_dev &&
        named.st_ino == opened.st_ino)
      return;
  }
}

FileLock::~FileLock() {
  ::unlink(lock_path_.c_str());  // while it is held, so that nobody else's is removed
  ::close(descriptor_);
}

namespace detail {

void make_folder(const std::string& path) {
  std::error_code error;
  std::filesystem::create_directories(path, error);
  // What libc++ says where a file has the folder's place.
  if (error == std::errc::file_exists) error = std::make_error_code(std::errc::not_a_directory);
  if (error) fail<FileError>(path, ": cannot be made a folder: ", error.message());
}

SizeLimitIsAnError::SizeLimitIsAnError() {
  sigemptyset(&signal_);
  sigaddset(&signal_, SIGXFSZ);
  pthread_sigmask(SIG_BLOCK, &signal_, &before_);
}

SizeLimitIsAnError::~SizeLimitIsAnError() {
  if (sigismember(&before_, SIGXFSZ)) return;
  const timespec at_once{};
  while (sigtimedwait(&signal_, nullptr, &at_once) == SIGXFSZ) continue;
  pthread_sigmask(SIG_SETMASK, &before_, nullptr);
}

}  // namespace detail

}  // namespace xgrad
