#pragma once

#include <chrono>
#include <cstddef>
#include <string>

namespace xgrad::detail {

/// Progress on stderr: on a terminal, a line redrawn at most ten times per second, elsewhere ten lines.
class ProgressBar {
 public:
  ProgressBar(std::size_t first, std::size_t steps, bool shown);
  ~ProgressBar() { end_line(); }
  ProgressBar(const ProgressBar&) = delete;
  ProgressBar& operator=(const ProgressBar&) = delete;

  /// Ends the line of the bar, so that other output starts on a new line.
  void end_line();

  /// Shows that `done` steps are complete, and the loss and the number of tokens of the last one.
  void update(std::size_t done, double loss, std::size_t tokens);

 private:
  using Clock = std::chrono::steady_clock;

  std::string text(std::size_t done, double loss) const;
  void redraw(std::size_t done, double loss);

  std::size_t first_, steps_;
  bool shown_, terminal_, drawn_ = false;
  std::size_t tokens_ = 0;
  Clock::time_point start_ = Clock::now(), last_ = start_;
};

}  // namespace xgrad::detail
