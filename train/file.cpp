#include "file.hpp"

#include <fcntl.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <ctime>
#include <filesystem>
#include <system_error>

#include "../graph/error.hpp"

namespace xgrad {
namespace {

std::string error_text(int error) { return std::system_category().message(error); }

[[noreturn]] void fail_to_read(const std::string& path, int error) {
  detail::fail<FileError>(path, ": cannot be read: ", error_text(error));
}

/// An open file or folder.
class Descriptor {
 public:
  Descriptor(const std::string& path, int flags) : number_(::open(path.c_str(), flags | O_CLOEXEC)) {}
  Descriptor(const Descriptor&) = delete;
  Descriptor& operator=(const Descriptor&) = delete;
  ~Descriptor() {
    if (number_ >= 0) ::close(number_);
  }
  int number() const { return number_; }

 private:
  int number_;
};

/// Makes write() beyond the process's limit of file sizes an error instead of a signal that ends the process.
class SizeLimitIsAnError {
 public:
  SizeLimitIsAnError() {
    sigemptyset(&signal_);
    sigaddset(&signal_, SIGXFSZ);
    pthread_sigmask(SIG_BLOCK, &signal_, &before_);
  }
  SizeLimitIsAnError(const SizeLimitIsAnError&) = delete;
  SizeLimitIsAnError& operator=(const SizeLimitIsAnError&) = delete;
  ~SizeLimitIsAnError() {
    if (sigismember(&before_, SIGXFSZ)) return;
    const timespec at_once{};
    while (sigtimedwait(&signal_, nullptr, &at_once) == SIGXFSZ) continue;
    pthread_sigmask(SIG_SETMASK, &before_, nullptr);
  }

 private:
  sigset_t signal_, before_;
};

/// The file that `path` leads to through symbolic links; `path` itself where that cannot be found out.
std::string without_links(const std::string& path) {
  std::error_code error;
  const std::filesystem::path target = std::filesystem::canonical(path, error);
  return error ? path : target.string();
}

std::string folder_of(const std::string& path) {
  const std::filesystem::path folder = std::filesystem::path(path).parent_path();
  return folder.empty() ? "." : folder.string();
}

}  // namespace

void MappedFile::Unmap::operator()(const std::byte* first) const noexcept {
  ::munmap(const_cast<std::byte*>(first), size);
}

MappedFile::MappedFile(const std::string& path) {
  const Descriptor file(path, O_RDONLY | O_NONBLOCK);  // a pipe must not wait for its writer
  struct stat status;
  if (file.number() < 0 || ::fstat(file.number(), &status) != 0) fail_to_read(path, errno);
  if (!S_ISREG(status.st_mode)) detail::fail<FileError>(path, ": must be a regular file");
  const auto size = static_cast<std::size_t>(status.st_size);
  if (size == 0) return;  // nothing cannot be mapped
  void* const first = ::mmap(nullptr, size, PROT_READ, MAP_PRIVATE, file.number(), 0);
  if (first == MAP_FAILED) fail_to_read(path, errno);
  first_ = {static_cast<const std::byte*>(first), Unmap{size}};
}

AtomicFile::AtomicFile(const std::string& path) : path_(path), target_(without_links(path)) {
  struct stat status;
  const bool replaces = ::stat(target_.c_str(), &status) == 0;
  if (!replaces && errno != ENOENT) fail(errno);
  if (replaces && !S_ISREG(status.st_mode))
    detail::fail<FileError>(path, ": cannot be written: it is no regular file");
  if (replaces && ::access(target_.c_str(), W_OK) != 0) fail(errno);
  if (std::filesystem::path(target_).filename().empty()) fail(ENOENT);

  static std::atomic<unsigned> count = 0;
  do {
    beside_ = (std::filesystem::path(folder_of(target_)) /
               (".xgrad-" + std::to_string(::getpid()) + "-" + std::to_string(count++)))
                  .string();
    descriptor_ = ::open(beside_.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
  } while (descriptor_ < 0 && errno == EEXIST);
  if (descriptor_ < 0) fail(errno);
  if (replaces) ::fchmod(descriptor_, status.st_mode & 07777);  // as far as it is allowed
}

AtomicFile::~AtomicFile() {
  if (descriptor_ < 0) return;
  ::close(descriptor_);
  ::unlink(beside_.c_str());
}

void AtomicFile::write(std::span<const std::byte> bytes) {
  const SizeLimitIsAnError guard;
  while (!bytes.empty()) {
    const ssize_t written = ::write(descriptor_, bytes.data(), bytes.size());
    if (written < 0 && errno == EINTR) continue;
    if (written < 0) fail(errno);
    bytes = bytes.subspan(static_cast<std::size_t>(written));
  }
}

void AtomicFile::commit() {
  if (::fsync(descriptor_) != 0 || ::rename(beside_.c_str(), target_.c_str()) != 0) fail(errno);
  ::close(descriptor_);
  descriptor_ = -1;
  const Descriptor folder(folder_of(target_), O_RDONLY | O_DIRECTORY);
  // Some file systems, and folders that may not be read, cannot flush the new name; the file is there all the
  // same.
  if (folder.number() >= 0 && ::fsync(folder.number()) != 0 && errno == EIO) fail(errno);
}

void AtomicFile::fail(int error) const {
  detail::fail<FileError>(path_, ": cannot be written: ", error_text(error));
}

}  // namespace xgrad
