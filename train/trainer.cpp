#include <xgrad/train/trainer.hpp>

#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cmath>
#include <csignal>
#include <cstdio>
#include <stdexcept>
#include <string>

#include <xgrad/graph/error.hpp>

namespace xgrad {
namespace {

using Clock = std::chrono::steady_clock;

double seconds_since(Clock::time_point start) {
  return std::chrono::duration<double>(Clock::now() - start).count();
}

std::atomic<unsigned> interrupts{0};
static_assert(std::atomic<unsigned>::is_always_lock_free);  // a signal handler may use no other

extern "C" void count_interrupt(int) { interrupts.fetch_add(1, std::memory_order_relaxed); }

/// While it lives, SIGINT and SIGTERM are noted instead of ending the process. A signal that is ignored stays
/// so.
class InterruptGuard {
 public:
  InterruptGuard() {
    for (Saved& saved : saved_) {
      struct sigaction ours = {};
      ours.sa_handler = count_interrupt;
      ours.sa_flags = SA_RESTART;
      sigemptyset(&ours.sa_mask);
      sigaction(saved.signal, nullptr, &saved.before);
      if (saved.before.sa_handler != SIG_IGN) sigaction(saved.signal, &ours, nullptr);
    }
  }
  ~InterruptGuard() {
    for (const Saved& saved : saved_) sigaction(saved.signal, &saved.before, nullptr);
  }
  InterruptGuard(const InterruptGuard&) = delete;
  InterruptGuard& operator=(const InterruptGuard&) = delete;

  bool interrupted() const { return interrupts.load(std::memory_order_relaxed) != before_; }

 private:
  struct Saved {
    int signal;
    struct sigaction before;
  };

  Saved saved_[2] = {{SIGINT, {}}, {SIGTERM, {}}};
  unsigned before_ = interrupts.load(std::memory_order_relaxed);
};

/// A line of stderr: redrawn in place on a terminal, at most ten times a second; else one of ten lines.
class Progress {
 public:
  Progress(std::size_t steps, bool shown)
      : steps_(steps), shown_(shown), terminal_(isatty(STDERR_FILENO) == 1) {}
  ~Progress() {
    if (drawn_) std::fputc('\n', stderr);
  }
  Progress(const Progress&) = delete;
  Progress& operator=(const Progress&) = delete;

  void update(std::size_t done, double loss) {
    if (!shown_) return;
    if (terminal_) {
      redraw(done, loss);
    } else if (done % ((steps_ + 9) / 10) == 0 || done == steps_) {
      std::fprintf(stderr, "%s\n", text(done, loss).c_str());
    }
  }

 private:
  std::string text(std::size_t done, double loss) const {
    const double rate = static_cast<double>(done) / std::max(seconds_since(start_), 1e-9);
    char line[160];
    std::snprintf(line, sizeof line, "step %zu/%zu  loss %.4g  %.*f steps/s  %.0f s left", done, steps_, loss,
                  rate < 100 ? 1 : 0, rate, static_cast<double>(steps_ - done) / rate);
    return line;
  }

  void redraw(std::size_t done, double loss) {
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

  static constexpr std::size_t bar_width = 20;

  std::size_t steps_;
  bool shown_, terminal_, drawn_ = false;
  Clock::time_point start_ = Clock::now(), last_ = start_;
};

}  // namespace

TrainingLog fit(std::size_t steps, const std::function<double(std::size_t)>& step, FitOptions options) {
  TrainingLog log;
  const InterruptGuard guard;
  const Clock::time_point start = Clock::now();
  Progress progress(steps, options.progress);
  for (std::size_t i = 0; i < steps && !log.interrupted; ++i) {
    const double loss = step(i);
    if (!std::isfinite(loss)) detail::fail<std::runtime_error>("fit: the loss of step ", i, " is ", loss);
    log.losses.push_back(loss);
    progress.update(i + 1, loss);
    log.interrupted = guard.interrupted();
  }
  log.seconds = seconds_since(start);
  return log;
}

}  // namespace xgrad
