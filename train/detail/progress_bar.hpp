#pragma once

#include <chrono>
#include <cstddef>
#include <string>

namespace xgrad::detail {

/// Progress on stderr: on a terminal a line that is redrawn at most ten times a second, elsewhere ten lines.
class ProgressBar {
 public:
  ProgressBar(std::size_t first, std::size_t steps, bool shown);
  ~ProgressBar() { end_line(); }
  ProgressBar(const ProgressBar&) = delete;
  ProgressBar& operator=(const ProgressBar&) = delete;

  /// Ends the line of the bar, so that others can print below it.
  void end_line();

  /// `done` steps are done; the last one had this loss and so many tokens.
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
