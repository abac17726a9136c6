#pragma once

#include <chrono>
#include <cstddef>
#include <string>

namespace xgrad::detail {

/// What steps and evaluations of a run have taken, in seconds.
struct RunTimes {
  std::size_t steps = 0, evaluations = 0;
  double training = 0, evaluating = 0;

  /// How long as many more take at the same speed.
  double left(std::size_t more_steps, std::size_t more_evaluations) const;
};

/// Progress on stderr: on a terminal, a line redrawn at most ten times per second, elsewhere ten lines.
class ProgressBar {
 public:
  /// With an evaluation after every `evaluate_every` steps; 0: none.
  ProgressBar(std::size_t first, std::size_t steps, std::size_t evaluate_every, bool shown);
  ~ProgressBar() { end_line(); }
  ProgressBar(const ProgressBar&) = delete;
  ProgressBar& operator=(const ProgressBar&) = delete;

  /// Ends the line of the bar, so that other output starts on a new line.
  void end_line();

  /// Shows that `done` steps are complete, and the loss and the number of tokens of the last one.
  void update(std::size_t done, double loss, std::size_t tokens);

  /// Tells how long an evaluation took, which the time left contains.
  void evaluated(double seconds);

 private:
  using Clock = std::chrono::steady_clock;

  std::string text(std::size_t done, double loss) const;
  void redraw(std::size_t done, double loss);

  std::size_t first_, steps_, evaluate_every_;
  bool shown_, terminal_, drawn_ = false;
  std::size_t tokens_ = 0;
  RunTimes times_;  // of evaluations; text() adds those of steps
  Clock::time_point start_ = Clock::now(), last_ = start_;
};

}  // namespace xgrad::detail
