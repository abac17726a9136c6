// Kills a process that saves checkpoints and folders, and saves to full disks: the last must load whole
#include <sched.h>
#include <sys/mount.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <iostream>
#include <random>

#include <xgrad/files.hpp>
#include <xgrad/xgrad.hpp>

#include "../../apps/common/command_line.hpp"
#include "../../apps/common/program.hpp"

namespace {

namespace fs = std::filesystem;

[[noreturn]] void fail(const std::string& what) { throw std::runtime_error(what); }

void check(bool done, const std::string& call) {
  if (!done) fail(call + ": " + std::strerror(errno));
}

/// A training run in which every number is that of the step; its file has some 100 KB.
class Run {
 public:
  explicit Run(const fs::path& folder) : path_(folder / "run.safetensors") {}

  const fs::path& path() const { return path_; }

  void save(std::size_t step) const {
    for (const auto& parameter : model_.parameters())
      parameter.assign(xgrad::Array<float>(parameter.shape(), static_cast<float>(step)));
    xgrad::save_checkpoint({{"model", model_}}, path_.string(), step);
  }

  /// The step of the file, whose numbers must all be of it.
  std::size_t load() const {
    const std::size_t step = xgrad::load_checkpoint(path_.string(), {{"model", model_}});
    for (const auto& parameter : model_.parameters()) {
      for (const float number : parameter.value())
        if (number != static_cast<float>(step)) fail("a checkpoint is mixed from several steps");
    }
    return step;
  }

 private:
  fs::path path_;
  xgrad::Linear<float> model_{160, 160};
};

/// The same in two files of a folder.
class FolderRun {
 public:
  explicit FolderRun(const fs::path& folder) : folder_((folder / "run").string()) {}

  void save(std::size_t step) const {
    xgrad::write_folder(folder_, [&](const std::string& other) {
      for (const char* name : names_)
        xgrad::save_npy(xgrad::Array<double>(xgrad::Shape{1000}, static_cast<double>(step)), other + name);
    });
  }

  std::size_t load() const {
    xgrad::complete_folder(folder_);
    const double step = xgrad::load_npy<double>(folder_ + names_[0])(0);
    for (const char* name : names_)
      for (const double number : xgrad::load_npy<double>(folder_ + name))
        if (number != step) fail("a folder is mixed from several steps");
    return static_cast<std::size_t>(step);
  }

 private:
  static constexpr const char* names_[] = {"/config.json", "/model.npy"};
  std::string folder_;
};

/// Runs the body in a child process, which says how it ended by its exit code or the signal.
template <class Body>
pid_t start(const Body& body) {
  std::cout.flush();  // else the child prints it, too
  const pid_t child = ::fork();
  check(child >= 0, "fork");
  if (child > 0) return child;
  try {
    body();
    ::_exit(0);
  } catch (const std::exception& error) {
    std::cerr << "kill_saves: " << error.what() << '\n';
  }
  ::_exit(1);
}

int wait_for(pid_t child) {
  int status = 0;
  check(::waitpid(child, &status, 0) == child, "waitpid");
  return status;
}

/// Whether a save fails as it must where there is no room. A failed one leaves no temporary file.
bool save_fails(const Run& run, std::size_t step) {
  try {
    run.save(step);
    return false;
  } catch (const xgrad::FileError&) {
    for (const auto& entry : fs::directory_iterator(run.path().parent_path()))
      if (entry.path().filename().string().starts_with(".xgrad-"))
        fail("a failed save leaves its temporary file");
    return true;
  }
}

/// Kills a child that saves one step after the other, each time at another moment.
template <class Run>
void kill_savers(const fs::path& folder, const char* what, std::size_t count, std::mt19937_64& random) {
  const Run run(folder);
  run.save(0);
  std::size_t step = 0, last = 0;
  for (std::size_t i = 0; i < count; ++i) {
    int ends[2];
    check(::pipe(ends) == 0, "pipe");
    const pid_t child = start([&] {
      const char saved = 1;
      for (std::size_t next = step + 1;; ++next) {
        run.save(next);
        check(::write(ends[1], &saved, 1) == 1, "write");
      }
    });
    ::close(ends[1]);
    std::size_t reported = 0;
    char saved;
    if (::read(ends[0], &saved, 1) == 1) ++reported;
    ::usleep(static_cast<useconds_t>(random() % 5000));
    ::kill(child, SIGKILL);
    const int status = wait_for(child);
    if (!WIFSIGNALED(status)) fail("a child could not save");
    while (::read(ends[0], &saved, 1) == 1) ++reported;
    ::close(ends[0]);
    const std::size_t found = run.load();
    if (found != step + reported && found != step + reported + 1)
      fail("after " + std::to_string(step + reported) + " saves the " + what + " is of step " +
           std::to_string(found));
    last += found == step + reported ? 1 : 0;
    step = found;
  }
  std::cout << "killed " << count << " times in " << step << " saves; the " << what
            << " was whole each time, " << last << " times the last one that was reported, else the next\n";
}

/// Saves in a child that may write no more than so many bytes to a file.
void limit_files(const fs::path& folder, std::size_t count, std::mt19937_64& random) {
  const Run run(folder);
  run.save(0);
  const std::size_t size = fs::file_size(run.path());
  for (std::size_t i = 0; i < count; ++i) {
    const rlim_t most = random() % size;
    const pid_t child = start([&] {
      const rlimit limit{most, most};
      check(::setrlimit(RLIMIT_FSIZE, &limit) == 0, "setrlimit");
      if (!save_fails(run, i + 1)) fail("a file is longer than the limit on files");
    });
    if (wait_for(child) != 0) fail("the limit was " + std::to_string(most) + " bytes");
    if (run.load() != 0) fail("a save that failed has changed the file");
  }
  std::cout << "limited " << count << " files to less than their " << size
            << " bytes: each save failed, and the file before it stayed\n";
}

/// Mounts a file system of 1 MiB that only this process sees. Without root's rights it needs a user name
/// space, which not every system allows.
bool mount_small_disk(const fs::path& at) {
  const uid_t user = ::geteuid();
  const gid_t group = ::getegid();
  if (::unshare(CLONE_NEWNS) != 0) {
    if (::unshare(CLONE_NEWUSER | CLONE_NEWNS) != 0) return false;
    // Files can be made only by a user and a group that it knows.
    std::ofstream("/proc/self/uid_map") << "0 " << user << " 1";
    std::ofstream("/proc/self/setgroups") << "deny";
    std::ofstream("/proc/self/gid_map") << "0 " << group << " 1";
  }
  return ::mount("none", "/", nullptr, MS_REC | MS_PRIVATE, nullptr) == 0 &&
         ::mount("tmpfs", at.c_str(), "tmpfs", 0, "size=1m") == 0;
}

/// Saves to a file system of its own that another file fills but for some pages.
void fill_disks(const fs::path& folder, std::size_t count, std::uint64_t seed) {
  const fs::path disk = folder / "disk";
  fs::create_directory(disk);
  constexpr int no_disk = 2;
  const pid_t child = start([&] {
    if (!mount_small_disk(disk)) ::_exit(no_disk);
    std::mt19937_64 random(seed);
    const Run run(disk);
    run.save(0);
    std::size_t step = 0, failed = 0;
    for (std::size_t i = 0; i < count; ++i) {
      const fs::path ballast = disk / "ballast";
      const std::size_t free = fs::space(disk).available, left = random() % (2 * fs::file_size(run.path()));
      std::ofstream(ballast) << std::string(free - std::min(left, free), 'x');
      const bool fails = save_fails(run, i + 1);
      if (!fails) step = i + 1;
      failed += fails ? 1 : 0;
      if (run.load() != step) fail("on a full disk the file is not that of the last save");
      fs::remove(ballast);
    }
    std::cout << "filled a disk " << count << " times: " << failed
              << " saves failed, and the file before stayed" << std::endl;
  });
  const int status = wait_for(child);
  if (WIFEXITED(status) && WEXITSTATUS(status) == no_disk) {
    std::cout << "no disk was filled: this system lets nobody but root mount one\n";
  } else if (status != 0) {
    fail("on a full disk");
  }
}

}  // namespace

int main(int argc, char** argv) {
  std::size_t count = 100;
  std::uint64_t seed = 1;
  apps::CommandLine app(
      "Kills a process that saves checkpoints and folders, and saves to full disks: the last one must load "
      "whole.");
  app.add_option("N", count, "How many times of each")->check(apps::in_range<std::size_t>(1, 1000000));
  app.add_option("--seed", seed, "Seed of the moments and the sizes");
  if (const std::optional<int> exit_code = app.parse(argc, argv)) return *exit_code;
  return apps::run_program("kill_saves", [&] {
    std::string folder = (fs::temp_directory_path() / "xgrad_kill_saves_XXXXXX").string();
    check(::mkdtemp(folder.data()) != nullptr, folder);
    std::mt19937_64 random(seed);
    for (const char* part : {"killed", "killed_folder", "limited"})
      fs::create_directory(fs::path(folder) / part);
    kill_savers<Run>(fs::path(folder) / "killed", "file", count, random);
    kill_savers<FolderRun>(fs::path(folder) / "killed_folder", "folder", count, random);
    limit_files(fs::path(folder) / "limited", count, random);
    fill_disks(folder, count, seed);
    fs::remove_all(folder);
    return 0;
  });
}
