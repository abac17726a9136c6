// What is saved is on the disk before it gets its name, its name is on the disk after that, and a system that
// fails or writes in small pieces loses nothing. This file replaces the system's calls for the whole test
// program; they do what they always do, but while a test watches them.

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdarg>
#include <filesystem>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include <xgrad/base/file.hpp>
#include <xgrad/base/folder.hpp>
#include <xgrad/files.hpp>
#include <xgrad/models/layers/linear.hpp>
#include <xgrad/train/detail/metrics_log.hpp>
#include <xgrad/train/trainer.hpp>
#include <xgrad/train/vocabulary.hpp>

#include "expect_error.hpp"
#include "files.hpp"

namespace {

using xgrad::FileError;
using xgrad_tests::message_of, xgrad_tests::read_bytes, xgrad_tests::TemporaryFolder;

/// What a test watches, and what it makes fail.
struct Watch {
  std::vector<std::string> calls = {};
  int error_of_file = 0, error_of_rename = 0, error_of_folder = 0;
  std::size_t longest_write = 0;         ///< bytes that a write takes at most; 0: any number
  bool interrupts = false;               ///< every second call fails with EINTR, from the first on
  std::size_t interruptions = 0;         ///< those that have been
  std::optional<std::size_t> size = {};  ///< bytes of a file that the disk takes
  /// The call that fails with EIO, of all from 0 on.
  std::optional<std::size_t> failing = {};
  std::size_t count = 0;
};

Watch* watch = nullptr;  // the tests of this program have one thread each

int failed(int error) {
  errno = error;
  return -1;
}

/// Whether this is the call that fails.
bool fails() {
  const bool is_chosen = watch != nullptr && watch->count++ == watch->failing;
  if (is_chosen) errno = EIO;
  return is_chosen;
}

bool interrupted() {
  if (fails()) return true;
  static bool last = false;
  last = watch != nullptr && watch->interrupts && !last;
  if (last) {
    ++watch->interruptions;
    errno = EINTR;
  }
  return last;
}

}  // namespace

extern "C" int open(const char* path, int flags, ...) {
  if (interrupted()) return -1;
  mode_t mode = 0;
  if ((flags & O_CREAT) != 0) {
    va_list arguments;
    va_start(arguments, flags);
    mode = va_arg(arguments, mode_t);
    va_end(arguments);
  }
  return static_cast<int>(syscall(SYS_openat, AT_FDCWD, path, flags, mode));
}

extern "C" int flock(int file, int operation) noexcept {
  if (interrupted()) return -1;
  return static_cast<int>(syscall(SYS_flock, file, operation));
}

extern "C" int ftruncate(int file, off_t size) noexcept {
  if (interrupted()) return -1;
  return static_cast<int>(syscall(SYS_ftruncate, file, size));
}

extern "C" ssize_t write(int file, const void* bytes, size_t count) {
  if (interrupted()) return -1;
  return syscall(SYS_write, file, bytes, count);
}

extern "C" int fsync(int file) {
  if (interrupted()) return -1;
  if (watch != nullptr) {
    struct stat status;
    fstat(file, &status);
    const bool folder = S_ISDIR(status.st_mode);
    watch->calls.push_back(folder ? "fsync folder " + std::to_string(status.st_ino)
                                  : "fsync " + std::to_string(status.st_size) + " bytes");
    if (const int error = folder ? watch->error_of_folder : watch->error_of_file) return failed(error);
  }
  return static_cast<int>(syscall(SYS_fsync, file));
}

extern "C" int mkdir(const char* path, mode_t mode) noexcept {
  if (fails()) return -1;
  return mkdirat(AT_FDCWD, path, mode);
}

extern "C" int rmdir(const char* path) noexcept {
  if (fails()) return -1;
  return unlinkat(AT_FDCWD, path, AT_REMOVEDIR);
}

extern "C" int unlink(const char* path) noexcept {
  if (fails()) return -1;
  return unlinkat(AT_FDCWD, path, 0);
}

extern "C" int rename(const char* from, const char* to) noexcept {
  if (fails()) return -1;
  if (watch != nullptr) {
    watch->calls.push_back(std::string("rename to ") + to);
    if (watch->error_of_rename != 0) return failed(watch->error_of_rename);
  }
  return renameat(AT_FDCWD, from, AT_FDCWD, to);
}

extern "C" ssize_t pwrite(int file, const void* bytes, size_t count, off_t begin) {
  if (interrupted()) return -1;
  if (watch != nullptr) {
    if (watch->longest_write > 0) count = std::min(count, watch->longest_write);
    const auto first = static_cast<std::size_t>(begin);
    if (watch->size && first >= *watch->size) return failed(ENOSPC);
    if (watch->size) count = std::min(count, *watch->size - first);
  }
  return syscall(SYS_pwrite64, file, bytes, count, begin);
}

namespace {

/// Watches while a call runs.
void watched(Watch& what, const std::function<void()>& call) {
  watch = &what;
  try {
    call();
  } catch (...) {
    watch = nullptr;
    throw;
  }
  watch = nullptr;
}

/// The calls that put a file of this size there safely, in their order.
std::vector<std::string> safe_calls(const std::string& path, std::size_t size) {
  struct stat folder;
  EXPECT_EQ(stat(std::filesystem::path(path).parent_path().c_str(), &folder), 0);
  return {"fsync " + std::to_string(size) + " bytes", "rename to " + path,
          "fsync folder " + std::to_string(folder.st_ino)};
}

TEST(DurableFilesTest, EveryKindOfFileIsFlushedThenNamedThenItsFolderFlushed) {
  const TemporaryFolder temporary;
  const std::string path = std::filesystem::canonical(temporary.path("")) / "file";
  const xgrad::StateDict<float> state{{"w", {1, 2, 3}}};
  const xgrad::Linear<float> model(2, 3);
  const std::vector<std::function<void()>> savers{
      [&] { xgrad::save_safetensors(state, path); },
      [&] { xgrad::save_npy(state.at("w"), path); },
      [&] { xgrad::save_npz(state, path); },
      [&] {
        xgrad::Vocabulary({"a", "b"}, "").save(path);
      },
      [&] {
        xgrad::AtomicFile file(path);
        for (const char* part : {"one", " two"}) file.write(std::as_bytes(std::span(std::string_view(part))));
        file.commit();
      },
      [&] {
        xgrad::NpyWriter<float> file(path, {3});
        for (int i = 0; i < 2; ++i) file.append({{1, 2, 3}});
        file.commit();
      },
      [&] {
        xgrad::SafetensorsWriter file({{"w", xgrad::DType::F32, {3}, {}}}, path);
        for (const float number : {1.0f, 2.0f, 3.0f}) file.write(std::as_bytes(std::span(&number, 1)));
        file.commit();
      }};
  for (std::size_t i = 0; i < savers.size(); ++i) {
    for (const bool replaces : {false, true}) {
      Watch seen;
      watched(seen, savers[i]);
      EXPECT_EQ(seen.calls, safe_calls(path, std::filesystem::file_size(path)))
          << i << (replaces ? " again" : "");
    }
    std::filesystem::remove(path);
  }
}

TEST(DurableFilesTest, ASignalInterruptsNoCall) {
  const TemporaryFolder temporary;
  const std::string path = std::filesystem::canonical(temporary.path("")) / "file";
  const std::string text = "one";
  Watch what{.interrupts = true};
  watched(what, [&] {
    const xgrad::FileLock lock(path);
    xgrad::AtomicFile file(path);
    file.write(std::as_bytes(std::span(std::string_view("one two"))));
    file.cut(text.size());
    file.commit();
    const xgrad::MappedFile mapped(path);
    EXPECT_EQ(mapped.bytes().size(), text.size());
  });
  EXPECT_EQ(read_bytes(path), text);
  EXPECT_EQ(what.calls, safe_calls(path, text.size()));
  // open and flock of the lock and of the temporary file, pwrite, ftruncate, fsync, open and fsync of the
  // folder, open of the mapped file
  EXPECT_EQ(what.interruptions, 10u);
}

TEST(DurableFilesTest, AFileThatCannotBeReadIsNotEmpty) {
  const std::string path = "/proc/self/mem", cannot = path + ": cannot be read: Input/output error";
  EXPECT_EQ(message_of<FileError>([&] { xgrad::MappedFile{path}; }), cannot);
  EXPECT_EQ(message_of<FileError>([&] { xgrad::is_gguf(path); }), cannot);
  EXPECT_EQ(message_of<std::runtime_error>([&] { xgrad::detail::MetricsLog(path, 1); }),
            "fit: " + path + ": cannot be written: Input/output error");
  EXPECT_EQ(message_of<FileError>([] { xgrad::MappedFile{"/proc/self/stat"}; }),
            "/proc/self/stat: must be a file whose size the system knows");
  const TemporaryFolder temporary;
  const xgrad::MappedFile empty(temporary.write("empty", ""));
  EXPECT_TRUE(empty.bytes().empty());
}

TEST(DurableFilesTest, ASignalInterruptsNoMetrics) {
  const TemporaryFolder temporary;
  const std::string path = temporary.path("metrics");
  Watch what{.interrupts = true};
  watched(what, [&] {
    xgrad::detail::MetricsLog log(path, 0);
    log.flush();
  });
  EXPECT_TRUE(read_bytes(path).ends_with("}\n"));
  EXPECT_EQ(what.interruptions, 3u) << "flock, ftruncate and write";
}

TEST(DurableFilesTest, ANameWithoutAFolderIsInTheCurrentOne) {
  const TemporaryFolder folder;
  const std::filesystem::path before = std::filesystem::current_path();
  std::filesystem::current_path(folder.path(""));
  Watch seen;
  EXPECT_NO_THROW(watched(seen, [] { xgrad::save_npy(xgrad::Array<float>{1, 2}, "file"); }));
  std::filesystem::current_path(before);
  ASSERT_FALSE(seen.calls.empty());
  EXPECT_EQ(seen.calls.back(), safe_calls(folder.path("file"), 0).back());
  EXPECT_EQ(folder.file_count(), 1u);
}

class FailingDisk : public testing::Test {
 protected:
  std::string error_of(Watch what) const {
    return message_of<FileError>([&] { watched(what, [this] { xgrad::save_npy(array_, path_); }); });
  }

  const TemporaryFolder folder_;
  const xgrad::Array<float> array_{1, 2, 3};
  const std::string path_ = folder_.write("file", "old"), cannot_ = path_ + ": cannot be written: ";
};

TEST_F(FailingDisk, WhatIsNotFlushedGetsNoName) {
  Watch what{.error_of_file = EIO};
  EXPECT_EQ(message_of<FileError>([&] { watched(what, [this] { xgrad::save_npy(array_, path_); }); }),
            cannot_ + "Input/output error");
  EXPECT_EQ(what.calls.size(), 1u) << "it is not renamed";
  EXPECT_EQ(read_bytes(path_), "old");
  EXPECT_EQ(folder_.file_count(), 1u) << "nothing is left beside it";
}

TEST_F(FailingDisk, ARenameThatFailsIsAnError) {
  EXPECT_EQ(error_of({.error_of_rename = ENOSPC}), cannot_ + "No space left on device");
  EXPECT_EQ(read_bytes(path_), "old");
  EXPECT_EQ(folder_.file_count(), 1u);
}

TEST_F(FailingDisk, AFolderThatCannotBeFlushedIsAnErrorOnlyIfTheDiskFails) {
  EXPECT_EQ(error_of({.error_of_folder = EINVAL}), "no exception");
  EXPECT_NE(read_bytes(path_), "old");
  EXPECT_EQ(error_of({.error_of_folder = EIO}), cannot_ + "Input/output error");
  EXPECT_EQ(folder_.file_count(), 1u);
}

TEST_F(FailingDisk, WritesMayBeShortAndInterrupted) {
  EXPECT_EQ(error_of({.longest_write = 7, .interrupts = true}), "no exception");
  EXPECT_EQ(xgrad::load_npy<float>(path_), array_);
}

TEST_F(FailingDisk, RowsBeforeTheDiskWasFullRemain) {
  const std::string part = folder_.path("part");
  Watch what{.longest_write = 7, .interrupts = true, .size = 128 + 2 * 12 + 5};
  watched(what, [&] {
    xgrad::NpyWriter<float> file(path_, {3});
    file.append({{1, 2, 3}});
    file.append({{4, 5, 6}});
    EXPECT_EQ(message_of<FileError>([&] { file.append({{7, 8, 9}}); }), cannot_ + "No space left on device");
    EXPECT_EQ(file.rows(), 2u);
    file.commit_as(part);
  });
  EXPECT_EQ(what.calls, safe_calls(std::filesystem::canonical(part), 128 + 2 * 12));
  EXPECT_EQ(xgrad::load_npy<float>(part), (xgrad::Array<float>{{1, 2, 3}, {4, 5, 6}}));
  EXPECT_EQ(read_bytes(path_), "old");
  EXPECT_EQ(folder_.file_count(), 2u) << "nothing is left beside them";
}

TEST_F(FailingDisk, AFileGoesOnBehindWhatWasCut) {
  const auto bytes = [](std::string_view text) { return std::as_bytes(std::span(text)); };
  const std::string other = folder_.write("other", "before");
  std::filesystem::permissions(other, std::filesystem::perms(0640));
  xgrad::AtomicFile file(path_);
  file.write(bytes("one two three"));
  file.cut(8);
  file.write(bytes("four"));
  file.overwrite(0, bytes("ONE"));
  EXPECT_EQ(message_of<FileError>([&] { file.commit_as(folder_.path("no/file")); }),
            folder_.path("no/file") + ": cannot be written: No such file or directory");
  EXPECT_EQ(message_of<FileError>([&] { file.commit_as(folder_.path("")); }),
            folder_.path("") + ": cannot be written: it is no regular file");
  file.commit_as(other);
  EXPECT_EQ(read_bytes(other), "ONE two four");
  EXPECT_EQ(std::filesystem::status(other).permissions(), std::filesystem::perms(0640));
  EXPECT_EQ(read_bytes(path_), "old");
  EXPECT_EQ(folder_.file_count(), 2u);
}

// ---- folders ----

class DurableFolder : public testing::Test {
 protected:
  DurableFolder() { write(path_, "old"); }

  static void write(const std::string& folder, const std::string& text) {
    xgrad::detail::make_folder(folder + "/part");
    for (const char* name : {"/config.json", "/model", "/part/model"}) {
      xgrad::AtomicFile file(folder + name);
      file.write(std::as_bytes(std::span(text)));
      file.commit();
    }
  }

  void save() const {
    xgrad::write_folder(path_, [](const std::string& other) { write(other, "new"); });
  }

  /// What all files are; "mixed" where they differ.
  std::string content() const {
    std::string found;
    for (const char* name : {"/config.json", "/model", "/part/model"}) {
      const std::string one = read_bytes(path_ + name);
      if (!found.empty() && found != one) return "mixed";
      found = one;
    }
    return found;
  }

  std::size_t hidden_count() const {
    std::size_t count = 0;
    for (const auto& entry : std::filesystem::recursive_directory_iterator(temporary_.path("")))
      count += entry.path().filename().string().starts_with(".xgrad-") ? 1 : 0;
    return count;
  }

  const TemporaryFolder temporary_;
  const std::string path_ = std::filesystem::canonical(temporary_.path("")) / "folder";
};

TEST_F(DurableFolder, AllFilesAreFlushedThenOneIsRenamedThenAll) {
  Watch seen;
  watched(seen, [this] { save(); });
  struct stat folder, part;
  ASSERT_EQ(stat(path_.c_str(), &folder) + stat((path_ + "/part").c_str(), &part), 0);
  const std::string flush_folder = "fsync folder " + std::to_string(folder.st_ino);
  const std::vector<std::string> expected{"rename to " + path_ + "/.xgrad-complete",
                                          flush_folder,
                                          "rename to " + path_ + "/model",
                                          "rename to " + path_ + "/part/model",
                                          "fsync folder " + std::to_string(part.st_ino),
                                          "rename to " + path_ + "/config.json",
                                          flush_folder};
  ASSERT_GT(seen.calls.size(), expected.size());
  const auto commit = seen.calls.end() - static_cast<std::ptrdiff_t>(expected.size());
  EXPECT_EQ(std::vector<std::string>(commit, seen.calls.end()), expected);
  EXPECT_EQ(std::count(seen.calls.begin(), commit, "fsync 3 bytes"), 6) << "by AtomicFile and for all files";
  EXPECT_TRUE((commit - 1)->starts_with("fsync folder ")) << "the new one";
  EXPECT_EQ(content(), "new");
  EXPECT_EQ(hidden_count(), 0u);
}

TEST_F(DurableFolder, WhicheverCallFailsTheFilesAreOldOrNew) {
  std::size_t failures = 0, completed = 0;
  for (std::size_t call = 0;; ++call) {
    write(path_, "old");
    Watch what{.failing = call};
    const std::string error = message_of<FileError>([&] { watched(what, [this] { save(); }); });
    if (what.count <= call) break;
    if (error == "no exception") {  // such as a folder that cannot be opened to be flushed
      EXPECT_EQ(content(), "new") << call;
      continue;
    }
    ++failures;
    EXPECT_TRUE(error.starts_with(path_)) << error;
    const bool is_complete = std::filesystem::exists(path_ + "/.xgrad-complete");
    completed += is_complete ? 1 : 0;
    EXPECT_EQ(hidden_count(), is_complete ? 1u : 0u) << call << ": " << error;
    xgrad::complete_folder(path_);
    EXPECT_EQ(content(), is_complete ? "new" : "old") << call << ": " << error;
    save();
    EXPECT_EQ(content(), "new") << call;
    EXPECT_EQ(hidden_count(), 0u) << call;
  }
  EXPECT_GT(failures, 20u);
  EXPECT_GT(completed, 3u);
}

TEST_F(DurableFolder, ASignalInterruptsNoFolder) {
  Watch what{.longest_write = 2, .interrupts = true};
  watched(what, [this] { save(); });
  EXPECT_EQ(content(), "new");
  EXPECT_GT(what.interruptions, 10u);
}

}  // namespace
