// Files of a folder are written together, or not at all.

#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <initializer_list>
#include <map>
#include <span>
#include <stdexcept>
#include <string>

#include <gtest/gtest.h>

#include <xgrad/base/error.hpp>
#include <xgrad/base/file.hpp>
#include <xgrad/base/folder.hpp>
#include <xgrad/files/npy.hpp>

#include "expect_error.hpp"
#include "files.hpp"
#include "killed.hpp"

namespace folder_test {

namespace fs = std::filesystem;
using xgrad::FileError, xgrad::write_folder;
using xgrad_tests::message_of, xgrad_tests::read_bytes, xgrad_tests::TemporaryFolder;

/// Texts by the paths of their files.
using Files = std::map<std::string, std::string>;

void write_files(const std::string& folder, const Files& files) {
  for (const auto& [name, text] : files) {
    const fs::path path = fs::path(folder) / name;
    fs::create_directories(path.parent_path());
    std::ofstream(path) << text;
  }
}

/// All files in a folder and in those in it.
Files files_in(const std::string& folder) {
  Files files;
  for (const auto& entry : fs::recursive_directory_iterator(folder)) {
    if (!entry.is_directory())
      files[fs::relative(entry.path(), folder).string()] = read_bytes(entry.path().string());
  }
  return files;
}

Files with(Files all, const Files& others) {
  for (const auto& [name, text] : others) all[name] = text;
  return all;
}

void save(const std::string& folder, const Files& files) {
  write_folder(folder, [&](const std::string& other) { write_files(other, files); });
}

/// Files of others in the folder.
const Files kept{{"README.md", "kept"}, {"1_Pooling/notes", "kept"}, {"mine/a/b", "kept"}};

const Files old_files{
    {"config.json", "old"}, {"model", "old"}, {"1_Pooling/config.json", "old"}, {"vocab.txt", "old"}};
const Files new_files{
    {"config.json", "new"}, {"model", "new"}, {"1_Pooling/config.json", "new"}, {"2_Dense/model", "new"}};

TEST(WriteFolder, MakesAFolderOnceItIsComplete) {
  const TemporaryFolder temporary;
  const std::string folder = temporary.path("a/b/");
  write_folder(folder, [&](const std::string& other) {
    EXPECT_TRUE(fs::is_empty(other));
    write_files(other, new_files);
    EXPECT_FALSE(fs::exists(folder));
  });
  EXPECT_EQ(files_in(temporary.path("")), (with({}, {{"a/b/config.json", "new"},
                                                     {"a/b/model", "new"},
                                                     {"a/b/1_Pooling/config.json", "new"},
                                                     {"a/b/2_Dense/model", "new"}})));
  struct stat made, usual;
  fs::create_directory(temporary.path("usual"));
  ASSERT_EQ(stat(folder.c_str(), &made) + stat(temporary.path("usual").c_str(), &usual), 0);
  EXPECT_EQ(made.st_mode, usual.st_mode);
}

TEST(WriteFolder, ReplacesFilesOnceAllAreCompleteAndKeepsOthers) {
  const TemporaryFolder temporary;
  const std::string folder = temporary.path("folder");
  const Files before = with(kept, old_files);
  write_files(folder, before);
  fs::permissions(folder, fs::perms(0700));
  fs::permissions(folder + "/model", fs::perms(0640));
  struct stat was, is;
  ASSERT_EQ(stat(folder.c_str(), &was), 0);
  write_folder(folder, [&](const std::string& other) {
    write_files(other, new_files);
    for (const auto& [name, text] : before) EXPECT_EQ(read_bytes(folder + "/" + name), text);
  });
  EXPECT_EQ(files_in(folder), with(before, new_files));
  ASSERT_EQ(stat(folder.c_str(), &is), 0);
  EXPECT_EQ(is.st_mode, was.st_mode);
  EXPECT_EQ(is.st_ino, was.st_ino) << "whoever is in the folder, stays in it";
  EXPECT_EQ(fs::status(folder + "/model").permissions(), fs::perms(0640));
  EXPECT_EQ(temporary.file_count(), 1u);
}

TEST(WriteFolder, AFailureLeavesEverythingAsItWas) {
  const TemporaryFolder temporary;
  const std::string folder = temporary.path("folder"), missing = temporary.path("missing");
  const Files before = with(kept, old_files);
  write_files(folder, before);
  for (const std::string& place : {folder, missing}) {
    EXPECT_EQ(message_of<FileError>([&] {
                write_folder(place, [&](const std::string& other) {
                  write_files(other, new_files);
                  xgrad::save_npy(xgrad::Array<float>{1}, other + "/none/file");
                });
              }),
              place + "/none/file: cannot be written: No such file or directory");
    EXPECT_THROW(write_folder(place,
                              [&](const std::string& other) {
                                write_files(other, new_files);
                                throw std::bad_alloc();
                              }),
                 std::bad_alloc);
  }
  EXPECT_EQ(files_in(folder), before);
  EXPECT_FALSE(fs::exists(folder + "/2_Dense"));
  EXPECT_EQ(temporary.file_count(), 1u);
}

TEST(WriteFolder, WhatCannotBeReplacedIsFoundBeforeAnythingIs) {
  const TemporaryFolder temporary;
  const std::string folder = temporary.path("folder");
  for (const auto& [name, what] :
       std::map<std::string, std::string>{{"model", "it is a folder"},
                                          {"2_Dense", "it is no folder"},
                                          {"config.json", "it is no regular file"}}) {
    fs::remove_all(folder);
    write_files(folder, kept);
    const std::string path = folder + "/" + name;
    if (name == "model") {
      fs::create_directory(path);
    } else if (name == "2_Dense") {
      std::ofstream(path) << "mine";
    } else {
      ASSERT_EQ(mkfifo(path.c_str(), 0600), 0);
    }
    EXPECT_EQ(message_of<FileError>([&] { save(folder, new_files); }), path + ": cannot be written: " + what);
    fs::remove(path);
    EXPECT_EQ(files_in(folder), kept);
  }
  const std::string file = temporary.write("file", "mine");
  for (const std::string& place : {file, file + "/folder"})
    EXPECT_EQ(message_of<FileError>([&] { save(place, new_files); }),
              file + ": cannot be made a folder: Not a directory");
  EXPECT_TRUE(message_of<FileError>([&] { save("", new_files); }).starts_with(": cannot be made a folder: "));
}

TEST(WriteFolder, AFolderThatIsReadOnlyStays) {
  const TemporaryFolder temporary;
  const std::string folder = temporary.path("folder");
  write_files(folder, old_files);
  fs::permissions(folder + "/model", fs::perms(0444));
  fs::permissions(temporary.path(""), fs::perms::all);
  const auto refusal = [&](int inside) {
    const pid_t child = ::fork();
    if (child == 0) {  // without root's rights, and from inside, as folders above may be closed to others
      fs::current_path(temporary.path(""));
      const bool is_user = ::geteuid() != 0 || ::setuid(65534) == 0;
      const std::string message = message_of<FileError>([] { save("folder", new_files); });
      const std::string expected = inside == 1 ? "folder/model: cannot be written: Permission denied"
                                               : "folder: cannot be written: Permission denied";
      ::_exit(is_user && message == expected ? 0 : 1);
    }
    int status = 0;
    ::waitpid(child, &status, 0);
    EXPECT_EQ(status, 0) << inside;
  };
  for (const auto& entry : fs::recursive_directory_iterator(folder))
    if (entry.is_directory()) fs::permissions(entry.path(), fs::perms::all);
  fs::permissions(folder, fs::perms::all);
  if (::geteuid() == 0)
    for (const char* name : {"/config.json", "/1_Pooling/config.json"})
      fs::permissions(folder + name, fs::perms(0666));
  refusal(1);
  fs::permissions(folder, fs::perms(0555));
  refusal(0);
  EXPECT_EQ(files_in(folder), old_files);
}

TEST(WriteFolder, CallsNest) {
  const TemporaryFolder temporary;
  const std::string folder = temporary.path("folder");
  save(folder, old_files);
  write_folder(folder, [&](const std::string& other) {
    save(other, {{"model", "new"}});
    save(other + "/2_Dense", {{"model", "new"}});
    save(other, {{"config.json", "new"}});
    EXPECT_EQ(read_bytes(folder + "/model"), "old");
    EXPECT_EQ(files_in(other), (Files{{"model", "new"}, {"2_Dense/model", "new"}, {"config.json", "new"}}));
  });
  EXPECT_EQ(files_in(folder),
            with(old_files, {{"model", "new"}, {"2_Dense/model", "new"}, {"config.json", "new"}}));
}

TEST(WriteFolder, LinksToTheFolderAreFollowedAndThoseInItReplaced) {
  const TemporaryFolder temporary;
  const std::string folder = temporary.path("folder"), link = temporary.path("link"),
                    other = temporary.path("other");
  write_files(folder, kept);
  write_files(other, {{"model", "theirs"}, {"dense/model", "theirs"}});
  fs::create_directory_symlink("folder", link);
  fs::create_symlink("../other/model", folder + "/model");
  fs::create_directory_symlink("../other/dense", folder + "/2_Dense");
  const fs::path before = fs::current_path();
  fs::current_path(temporary.path(""));
  save("link", new_files);
  fs::current_path(before);
  EXPECT_TRUE(fs::is_symlink(link));
  EXPECT_EQ(files_in(folder), with(kept, new_files));
  EXPECT_EQ(files_in(other), (Files{{"model", "theirs"}, {"dense/model", "theirs"}}));
}

TEST(WriteFolder, OfTheCurrentFolderIsThatFolder) {
  const TemporaryFolder temporary;
  const fs::path before = fs::current_path();
  fs::current_path(temporary.path(""));
  save(".", new_files);
  EXPECT_EQ(files_in("."), new_files);
  fs::current_path(before);
  EXPECT_EQ(files_in(temporary.path("")), new_files);
}

TEST(WriteFolder, KilledAtAnyCallItHasTheOldFilesOrTheNewOnes) {
  for (const bool is_there : {false, true}) {
    std::size_t completed = 0, call = 0;
    for (;; ++call) {
      const TemporaryFolder temporary;
      const std::string folder = temporary.path("folder");
      if (is_there) write_files(folder, with(kept, old_files));
      const auto ending = xgrad_tests::killed_at(call, [&] { save(folder, new_files); });
      if (ending == xgrad_tests::Ending::not_traced) GTEST_SKIP() << "no process may be traced here";
      ASSERT_NE(ending, xgrad_tests::Ending::failed);
      if (ending == xgrad_tests::Ending::done) break;
      const Files all_new = is_there ? with(with(kept, old_files), new_files) : new_files;
      const auto without_hidden = [&] {
        Files files = fs::exists(folder) ? files_in(folder) : Files();
        std::erase_if(files, [](const auto& file) { return file.first.starts_with(".xgrad-"); });
        return files;
      };
      const Files raw = without_hidden();
      const bool is_loadable = raw.contains("config.json");
      xgrad::complete_folder(folder);
      const Files after = without_hidden();
      EXPECT_FALSE(fs::exists(folder + "/.xgrad-complete"));
      if (is_there ? after != with(kept, old_files) : !after.empty()) {
        EXPECT_EQ(after, all_new) << call;
        if (raw != after) ++completed;
      }
      EXPECT_TRUE(!is_loadable || raw == all_new || raw == with(kept, old_files))
          << "what other programs load is whole, " << call;
      // The next process removes what this one has left.
      EXPECT_EQ(xgrad_tests::killed_at(1'000'000, [&] { save(folder, new_files); }),
                xgrad_tests::Ending::done);
      EXPECT_EQ(files_in(temporary.path("")).size(), all_new.size()) << call;
      EXPECT_EQ(files_in(folder), all_new) << call;
      EXPECT_EQ(temporary.file_count(), 1u) << call;
    }
    EXPECT_GT(call, 20u);
    EXPECT_EQ(completed > 3, is_there);
  }
}

/// Whether a system call names a path.
bool names_path(std::uint64_t call) {
  const std::initializer_list<std::uint64_t> naming{
      SYS_openat,   SYS_newfstatat, SYS_faccessat, SYS_faccessat2, SYS_fchmodat,  SYS_mkdirat,
      SYS_unlinkat, SYS_renameat,   SYS_renameat2, SYS_readlinkat, SYS_symlinkat, SYS_statx,
#ifdef SYS_rename
      SYS_open,     SYS_stat,       SYS_lstat,     SYS_access,     SYS_rename,    SYS_mkdir,
      SYS_unlink,   SYS_rmdir,      SYS_chmod,     SYS_readlink,
#endif
  };
  return std::ranges::find(naming, call) != naming.end();
}

// One stops at each of its calls that name a path, the other then at each of those that also change files;
// the first one goes on to its end, then the other one.
TEST(WriteFolder, TwoWritersMayInterruptEachOtherAnywhere) {
  using xgrad_tests::changes_files, xgrad_tests::TracedProcess, xgrad_tests::waits_for_lock;
  using State = TracedProcess::State;
  const Files files[2] = {{{"config.json", "1"}, {"part/model", "1"}},
                          {{"config.json", "2"}, {"part/model", "2"}}};
  for (const bool is_there : {false, true}) {
    const Files before = is_there ? Files{{"config.json", "0"}, {"kept", "0"}, {"part/model", "0"}} : Files();
    const Files results[2] = {with(before, files[0]), with(before, files[1])};
    bool first_stops = true;
    for (std::size_t first_stop = 0; first_stops; ++first_stop) {
      bool second_stops = true;
      for (std::size_t second_stop = 0; second_stops; ++second_stop) {
        const TemporaryFolder temporary;
        const std::string folder = temporary.path("folder");
        write_files(folder, before);
        TracedProcess first([&] { save(folder, files[0]); }), second([&] { save(folder, files[1]); });
        std::size_t calls = 0;
        first_stops = first.run_until([&](std::uint64_t call, const std::uint64_t*) {
          return names_path(call) && calls++ == first_stop;
        }) == State::stopped;
        if (first.state() == State::not_traced) GTEST_SKIP() << "no process may be traced here";
        calls = 0;
        bool waits = false;
        second_stops = second.run_until([&](std::uint64_t call, const std::uint64_t* arguments) {
          waits = waits_for_lock(call, arguments);
          return waits || (names_path(call) && changes_files(call, arguments) && calls++ == second_stop);
        }) == State::stopped &&
                       !waits;
        // Whoever waits for a lock lets the other one go on, which has it.
        while (first.state() == State::stopped || second.state() == State::stopped) {
          first.run_until(waits_for_lock);
          second.run_until(waits_for_lock);
        }
        ASSERT_EQ(first.state(), State::done) << first_stop << ' ' << second_stop;
        ASSERT_EQ(second.state(), State::done) << first_stop << ' ' << second_stop;
        const Files last = files_in(folder);
        ASSERT_TRUE(last == results[0] || last == results[1]) << first_stop << ' ' << second_stop;
        ASSERT_EQ(temporary.file_count(), 1u) << first_stop << ' ' << second_stop;
      }
    }
  }
}

TEST(AtomicFile, WhatItReplacesMayBeRemovedAtAnyCall) {
  using xgrad_tests::TracedProcess;
  using State = TracedProcess::State;
  bool stops = true;
  for (std::size_t stop = 0; stops; ++stop) {
    const TemporaryFolder temporary;
    const std::string path = temporary.write("file", "old");
    TracedProcess writer([&] {
      xgrad::AtomicFile file(path);
      file.write(std::as_bytes(std::span("new", 3)));
      file.commit();
    });
    std::size_t calls = 0;
    stops = writer.run_until([&](std::uint64_t call, const std::uint64_t*) {
      return names_path(call) && calls++ == stop;
    }) == State::stopped;
    if (writer.state() == State::not_traced) GTEST_SKIP() << "no process may be traced here";
    if (read_bytes(path) == "old") fs::remove(path);
    writer.run_until([](std::uint64_t, const std::uint64_t*) { return false; });
    ASSERT_EQ(writer.state(), State::done) << stop;
    ASSERT_EQ(read_bytes(path), "new") << stop;
  }
}

TEST(WriteFolder, OfTwoWritersTheLastOneWins) {
  const TemporaryFolder temporary;
  const std::string folder = temporary.path("folder");
  constexpr int times = 40;
  pid_t writers[2];
  const Files files[2] = {new_files, with(new_files, {{"config.json", "2"}, {"model", "2"}})};
  for (int i = 0; i < 2; ++i) {
    writers[i] = ::fork();
    if (writers[i] != 0) continue;
    const std::string message = message_of<std::exception>([&] {
      for (int time = 0; time < times; ++time) save(folder, files[i]);
    });
    if (message != "no exception") std::cerr << message << '\n';
    ::_exit(message == "no exception" ? 0 : 1);
  }
  for (const pid_t writer : writers) {
    int status = 1;
    ::waitpid(writer, &status, 0);
    EXPECT_EQ(status, 0);
  }
  const Files last = files_in(folder);
  EXPECT_TRUE(last == files[0] || last == files[1]);
  EXPECT_EQ(temporary.file_count(), 1u);
}

TEST(CompleteFolder, SaysWhatCannotBeMoved) {
  const TemporaryFolder temporary;
  const std::string folder = temporary.path("folder");
  write_files(folder, old_files);
  xgrad::complete_folder(folder);
  xgrad::complete_folder(temporary.path("missing"));
  xgrad::complete_folder(folder + "/model");
  EXPECT_EQ(files_in(folder), old_files);
  write_files(folder + "/.xgrad-complete", {{"model", "new"}});
  fs::remove(folder + "/model");
  fs::create_directory(folder + "/model");
  EXPECT_EQ(message_of<FileError>([&] { xgrad::complete_folder(folder); }),
            folder + ": its new files are complete in " + folder +
                "/.xgrad-complete, and cannot be moved to their places: Is a directory");
  fs::remove(folder + "/model");
  xgrad::complete_folder(folder);
  EXPECT_EQ(files_in(folder), with(old_files, {{"model", "new"}}));
}

}  // namespace folder_test
