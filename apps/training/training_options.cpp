#include "training_options.hpp"

#include <stdlib.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/statvfs.h>

#include <algorithm>
#include <cstdio>
#include <filesystem>
#include <limits>
#include <map>
#include <span>
#include <system_error>
#include <vector>

#include <xgrad/base/detail/system/folder_names.hpp>
#include <xgrad/base/detail/text/json_tree.hpp>
#include <xgrad/base/error.hpp>

#include "../common/command_line.hpp"
#include "ranks.hpp"

namespace apps {
namespace {

namespace fs = std::filesystem;

Check in_size_range() { return in_range<std::size_t>(1, 4096); }

/// The folders of a path that do not exist; what is made of them is removed at the end, as far as it is
/// empty.
class MissingFolders {
 public:
  explicit MissingFolders(const std::string& path) {
    std::error_code error;
    for (fs::path folder = fs::absolute(path, error);
         folder.has_relative_path() && !fs::exists(fs::symlink_status(folder, error));
         folder = folder.parent_path())
      folders_.push_back(folder);
  }
  MissingFolders(const MissingFolders&) = delete;
  MissingFolders& operator=(const MissingFolders&) = delete;
  ~MissingFolders() {
    std::error_code error;
    for (const fs::path& folder : folders_) fs::remove(folder, error);
  }

 private:
  std::vector<fs::path> folders_;  // the innermost first
};

}  // namespace

bool RunOptions::leads() const { return ranks == nullptr || ranks->rank() == 0; }

void add_options(CommandLine& app, RunOptions& options) {
  const Check sizes = in_size_range();
  app.add_option("--seed", options.seed, "Seed of the initial weights and the batches")
      ->check(in_range<std::uint64_t>(0, std::numeric_limits<std::uint64_t>::max()))
      ->capture_default_str();
  app.add_option("--steps", options.steps, "Training steps")
      ->check(in_range<std::size_t>(1, 100000000))
      ->capture_default_str();
  app.add_option("--batch", options.batch, "Examples in a batch")->check(sizes)->capture_default_str();
  app.add_option("--lr", options.lr, "Highest learning rate")
      ->check(in_range(1e-9, 10.0))
      ->capture_default_str();
  app.add_option(
         "--shards", options.shards,
         "Parts of a batch, which ranks share, in a build with MPI; 1, or 8 if there are several ranks")
      ->check(sizes);
  app.add_option("--metrics", options.metrics, "Write the results to this JSON file")->path(PathUse::output);
  app.add_option("--log", options.log, "Write a line of JSON for each step to this file")
      ->path(PathUse::output);
  app.add_option(
         "--report", options.report,
         "Write an HTML report to this file: attention, graph, curves, parameters; or its data if the name "
         "ends in .json")
      ->path(PathUse::output);
  auto* checkpoint = app.add_option("--checkpoint", options.checkpoint,
                                    "Save the run to this file every 1000 steps and at its end")
                         ->path(PathUse::output);
  app.add_flag("--resume", options.resume, "Resume the run saved in the file of --checkpoint")
      ->needs(checkpoint);
  app.add_option("--precision", options.precision,
                 "Precision of matrix products: highest is float32; medium is faster on some processors")
      ->check(one_of({"highest", "medium"}))
      ->capture_default_str();
  app.add_flag("--detect-anomaly", options.detect_anomaly,
               "Stop with an error that names the first op with a nan");
}

void add_options(CommandLine& app, TrainingOptions& options) {
  add_options(app, static_cast<RunOptions&>(options));
  const Check sizes = in_size_range();
  app.add_option("--d-model", options.d_model, "Width of the model")->check(sizes)->capture_default_str();
  app.add_option("--heads", options.heads, "Attention heads; they divide the width")
      ->check(sizes)
      ->capture_default_str();
  app.add_option("--d-ff", options.d_ff, "Width of the feed-forward layers")
      ->check(sizes)
      ->capture_default_str();
  app.add_option("--layers", options.layers, "Layers of the model")
      ->check(in_range<std::size_t>(1, 64))
      ->capture_default_str();
}

void check_writable(const std::string& path) {
  if (!path.empty()) xgrad::AtomicFile file(path);
}

void check_writable_folder(const std::string& folder) {
  if (folder.empty()) return;
  const MissingFolders missing(folder);
  xgrad::detail::make_folder(folder);
  check_writable(folder + "/config.json");
}

void check_room(const std::vector<FileToWrite>& files) {
  struct Disk {
    std::uint64_t kept = 0, twice = 0;  // of the largest file that is there twice
    std::uint64_t available;
    std::string paths;
  };
  std::map<dev_t, Disk> disks;
  rlimit limit{};
  const bool is_limited = ::getrlimit(RLIMIT_FSIZE, &limit) == 0 && limit.rlim_cur != RLIM_INFINITY;
  for (const FileToWrite& file : files) {
    if (is_limited && file.bytes > limit.rlim_cur)
      throw xgrad::FileError(file.path + ": needs " + std::to_string(file.bytes) +
                             " bytes, and the limit on the size of files (ulimit -f) is " +
                             std::to_string(limit.rlim_cur));
    std::error_code error;
    fs::path there = fs::absolute(file.path, error);
    const bool exists = fs::exists(there, error);
    while (!fs::exists(there, error) && there.has_relative_path()) there = there.parent_path();
    struct stat status {};
    struct statvfs disk {};
    if (::stat(there.c_str(), &status) != 0 || ::statvfs(there.c_str(), &disk) != 0) continue;
    if (disk.f_blocks == 0) continue;  // a file system that does not tell its size
    Disk& sum = disks[status.st_dev];
    sum.available = std::uint64_t{disk.f_bavail} * disk.f_frsize;
    if (!exists) sum.kept += file.bytes;
    if (exists || file.again) sum.twice = std::max(sum.twice, file.bytes);
    sum.paths += (sum.paths.empty() ? "" : " and ") + file.path;
  }
  for (const auto& [device, disk] : disks) {
    if (disk.kept + disk.twice > disk.available)
      throw xgrad::FileError(disk.paths + ": needs " + std::to_string(disk.kept + disk.twice) +
                             " bytes, and the disk has " + std::to_string(disk.available));
  }
}

std::string save_or_rescue(const std::string& path, const std::function<void(const std::string&)>& save) {
  std::string what;
  try {
    save(path);
    return path;
  } catch (const xgrad::FileError& error) {
    what = error.what();
  }
  std::error_code error;
  fs::path whole = fs::absolute(path, error).lexically_normal();
  if (!whole.has_filename()) whole = whole.parent_path();
  for (const fs::path& parent : {whole.parent_path(), fs::temp_directory_path(error)}) {
    std::string folder = (parent / "xgrad-saved-XXXXXX").string();
    if (::mkdtemp(folder.data()) == nullptr) continue;
    const std::string other = folder + "/" + whole.filename().string();
    try {
      save(other);
      std::fprintf(stderr, "%s; the model is saved in %s instead\n", what.c_str(), other.c_str());
      return other;
    } catch (const xgrad::FileError&) {
      xgrad::detail::remove_folder(folder.c_str());
    }
  }
  throw xgrad::FileError(what);
}

void check_files(const RunOptions& options) {
  if (!options.leads()) return;
  std::error_code error;
  if (!options.resume && fs::exists(options.checkpoint, error))
    throw xgrad::FileError(options.checkpoint +
                           ": exists, and --checkpoint would overwrite it; --resume goes on with a run that "
                           "is saved there, and for a new run remove the file or name another one");
  check_writable(options.checkpoint);
  // The log may also be a pipe or a device.
  const fs::file_status log = fs::status(options.log, error);
  if (!fs::exists(log) || fs::is_regular_file(log) || fs::is_directory(log)) check_writable(options.log);
}

MetricsFile::MetricsFile(const std::string& path) {
  if (!path.empty()) file_.emplace(path);
}

void MetricsFile::write(const xgrad::detail::JsonTree& metrics) {
  if (!file_) return;
  const std::string text = metrics.dump(2) + "\n";
  file_->write(std::as_bytes(std::span(text)));
  file_->commit();
}

}  // namespace apps
