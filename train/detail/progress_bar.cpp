#include "progress_bar.hpp"

#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>

#include "../../base/detail/system/seconds_since.hpp"

namespace xgrad::detail {
namespace {

constexpr std::size_t bar_width = 20;

/// "12 s", "3:25 min" or "1:02:03 h".
std::string duration(double seconds) {
  const auto whole = static_cast<unsigned long>(seconds + 0.5);
  char text[48];
  if (whole < 60) {
    std::snprintf(text, sizeof text, "%lu s", whole);
  } else if (whole < 3600) {
    std::snprintf(text, sizeof text, "%lu:%02lu min", whole / 60, whole % 60);
  } else {
    std::snprintf(text, sizeof text, "%lu:%02lu:%02lu h", whole / 3600, whole / 60 % 60, whole % 60);
  }
  return text;
}

}  // namespace

double RunTimes::left(std::size_t more_steps, std::size_t more_evaluations) const {
  const auto mean = [](double seconds, std::size_t count) {
    return count == 0 ? 0 : seconds / static_cast<double>(count);
  };
  return static_cast<double>(more_steps) * mean(training, steps) +
         static_cast<double>(more_evaluations) * mean(evaluating, evaluations);
}

ProgressBar::ProgressBar(std::size_t first, std::size_t steps, std::size_t evaluate_every, bool shown)
    : first_(first),
      steps_(steps),
      evaluate_every_(evaluate_every),
      shown_(shown),
      terminal_(isatty(STDERR_FILENO) == 1) {}

void ProgressBar::end_line() {
  if (drawn_) std::fputc('\n', stderr);
  drawn_ = false;
}

void ProgressBar::update(std::size_t done, double loss, std::size_t tokens) {
  tokens_ += tokens;
  if (!shown_) return;
  if (terminal_) {
    redraw(done, loss);
  } else if (done % ((steps_ + 9) / 10) == 0 || done == steps_) {
    std::fprintf(stderr, "%s\n", text(done, loss).c_str());
  }
}

void ProgressBar::evaluated(double seconds) {
  ++times_.evaluations;
  times_.evaluating += seconds;
}

std::string ProgressBar::text(std::size_t done, double loss) const {
  RunTimes times = times_;
  times.steps = done - first_;
  times.training = std::max(seconds_since(start_) - times.evaluating, 1e-9);
  const double rate = static_cast<double>(tokens_ > 0 ? tokens_ : times.steps) / times.training;
  const std::size_t evaluations =  // that of this step comes next
      evaluate_every_ == 0 ? 0 : steps_ / evaluate_every_ - (done - 1) / evaluate_every_;
  char line[160];
  std::snprintf(line, sizeof line, "step %zu/%zu  loss %.4g  %.*f %s/s  %s left", done, steps_, loss,
                rate < 100 ? 1 : 0, rate, tokens_ > 0 ? "tokens" : "steps",
                duration(times.left(steps_ - done, evaluations)).c_str());
  return line;
}

void ProgressBar::redraw(std::size_t done, double loss) {
  if (done != steps_ && drawn_ && seconds_since(last_) < 0.1) return;
  last_ = Clock::now();
  winsize size = {};
  const bool known = ioctl(STDERR_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col > 0;
  const std::size_t columns = (known ? size.ws_col : 80) - 1;
  const std::string numbers = text(done, loss);
  std::string line;
  if (numbers.size() + bar_width + 3 <= columns) {
    const std::size_t filled = bar_width * done / steps_;
    line.append(1, '[').append(filled, '=').append(bar_width - filled, ' ').append("] ");
  }
  line += numbers;
  line.resize(std::min(line.size(), columns));
  std::fprintf(stderr, "\r%s\x1b[K", line.c_str());
  drawn_ = true;
}

}  // namespace xgrad::detail
