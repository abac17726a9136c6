#pragma once

#include <cstddef>
#include <cstdio>
#include <memory>
#include <string>

namespace xgrad {

struct StepResult;

namespace detail {

/// The file of a training run with a line of JSON for each step.
class MetricsLog {
 public:
  /// Begins a new file, or, with a first step, goes on after the last line of a step before it; an empty path
  /// is no file, and a device or a pipe has no lines. Throws std::runtime_error if that cannot be.
  MetricsLog(const std::string& path, std::size_t first_step);

  /// Adds a line; an error is kept for flush(), so that a full disk does not keep the run from saving.
  void write(std::size_t step, const StepResult& result, double seconds);
  bool failed() const { return error_ != 0; }

  /// Hands all lines to the system. Throws std::runtime_error if a line could not be written.
  void flush();

 private:
  struct Close {
    void operator()(std::FILE* file) const { std::fclose(file); }
  };

  [[noreturn]] void fail(const std::string& why) const;
  void skip_to(std::size_t first_step);

  std::string path_;
  int error_ = 0;  // the first errno
  std::unique_ptr<std::FILE, Close> file_;
};

}  // namespace detail
}  // namespace xgrad
