#pragma once

// The options that training programs have in common, and the files that these name.

#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include <xgrad/base/detail/text/json_tree_fwd.hpp>
#include <xgrad/base/file.hpp>

namespace apps {

class CommandLine;
class Ranks;

/// How a model is trained.
struct RunOptions {
  std::uint64_t seed = 0;
  std::size_t steps, batch;
  double lr;
  std::optional<std::size_t> shards = {};
  std::string program = {};  ///< its name
  std::string metrics = {}, log = {}, checkpoint = {}, report = {};
  bool resume = false, detect_anomaly = false;
  std::string precision = "highest";  ///< of matrix products
  Ranks* ranks = nullptr;             ///< that share the run; null: this process alone

  std::size_t shard_count() const { return shards.value_or(ranks != nullptr ? 8 : 1); }

  /// Whether this is the rank that prints, and writes files.
  bool leads() const;
};

struct EncoderSizes {
  std::size_t d_model, heads, d_ff, layers;
};

/// The same with the sizes of the model that is made.
struct TrainingOptions : RunOptions, EncoderSizes {};

/// Adds the options to a program's command line; the values that `options` holds are the defaults.
void add_options(CommandLine& app, RunOptions& options);

/// The same with the sizes.
void add_options(CommandLine& app, TrainingOptions& options);

/// Throws xgrad::FileError if a file cannot be written; to be called before a long training.
void check_writable(const std::string& path);

/// check_writable for a folder with a model, which need not exist.
void check_writable_folder(const std::string& folder);

/// A file, or a folder with a model, that is written at the end, or `again` and again.
struct FileToWrite {
  std::string path;
  std::uint64_t bytes;
  bool again = false;
};

/// Throws xgrad::FileError if the disks of the files do not have the space for them, or the limit on the size
/// of files (ulimit -f) is less. A file that is written when it exists is there twice until it is complete.
void check_room(const std::vector<FileToWrite>& files);

/// save(path); if that throws xgrad::FileError, save(another) with the same name in a new folder beside the
/// path, or else in one of temporary files, with a line on stderr that says where. Returns the path. Throws
/// the error of the first one if no place takes it.
std::string save_or_rescue(const std::string& path, const std::function<void(const std::string&)>& save);

/// Throws xgrad::FileError if --checkpoint names a file that exists, unless its run is resumed, and if the
/// checkpoint or the log cannot be written. Only the rank that leads checks.
void check_files(const RunOptions& options);

/// The file of --metrics, opened before the training, so that a path that cannot be written is an error at
/// once.
class MetricsFile {
 public:
  /// For an empty path nothing is written.
  explicit MetricsFile(const std::string& path);

  void write(const xgrad::detail::JsonTree& metrics);

 private:
  std::optional<xgrad::AtomicFile> file_;
};

}  // namespace apps
