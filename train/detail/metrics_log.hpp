#pragma once

#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <map>
#include <memory>
#include <optional>
#include <string>

#include "../../base/detail/system/retried.hpp"

namespace xgrad {

struct StepResult;

namespace detail {

/// The file with one line of JSON per step of fit().
class MetricsLog {
 public:
  /// Starts a new file with a line about the run or, if first_step is not 0, removes the lines of later steps
  /// from the existing file and appends to it. Without a path, writes nothing; writes to a device or a pipe
  /// directly. Throws FileError for a file that cannot be opened, is being written by another run,
  /// or has other content.
  MetricsLog(const std::string& path, std::size_t first_step,
             const std::map<std::string, std::string>& about = {}, std::optional<std::uint64_t> seed = {});
  MetricsLog(const MetricsLog&) = delete;
  MetricsLog& operator=(const MetricsLog&) = delete;
  ~MetricsLog() { write_lines(); }

  /// Adds a line. Errors are thrown later, by flush(), so that the run can save first.
  void write(std::size_t step, const StepResult& result, double seconds);
  bool failed() const { return error_ != 0; }

  /// Writes all lines to the file. Throws FileError if a line could not be written.
  void flush();

 private:
  [[noreturn]] void fail(const std::string& why) const;
  /// Returns the number of bytes of the file to keep.
  std::size_t lock_and_cut(std::size_t first_step);
  std::size_t length_until(std::size_t first_step);
  void write_lines();

  std::string path_;
  int error_ = 0;  // errno of the first write that failed
  std::unique_ptr<std::FILE, CloseFile> file_;
  std::string lines_;  // not written yet
};

}  // namespace detail
}  // namespace xgrad
