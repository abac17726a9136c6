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
  /// is no file. Throws std::runtime_error if that cannot be.
  MetricsLog(const std::string& path, std::size_t first_step);

  void write(std::size_t step, const StepResult& result, double seconds);

  /// Hands all lines to the system.
  void flush();

 private:
  struct Close {
    void operator()(std::FILE* file) const { std::fclose(file); }
  };

  [[noreturn]] void fail(const std::string& why) const;
  void skip_to(std::size_t first_step);

  std::string path_;
  std::unique_ptr<std::FILE, Close> file_;
};

}  // namespace detail
}  // namespace xgrad
