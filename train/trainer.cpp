#include "trainer.hpp"

#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cmath>
#include <csignal>
#include <cstdio>
#include <span>
#include <stdexcept>
#include <string>
#include <vector>

#include "../base/error.hpp"
#include "../base/random.hpp"
#include "../graph/matmul_precision.hpp"
#include "../kernels/gemm/gemm.hpp"
#include "detail/metrics_log.hpp"

namespace xgrad {
namespace {

using Clock = std::chrono::steady_clock;

double seconds_since(Clock::time_point start) {
  return std::chrono::duration<double>(Clock::now() - start).count();
}

std::atomic<unsigned> interrupts{0};
static_assert(std::atomic<unsigned>::is_always_lock_free);  // as signal handlers need

void count_interrupt(int) { interrupts.fetch_add(1, std::memory_order_relaxed); }

/// While it lives, SIGINT, SIGTERM and SIGHUP, and with ranks SIGUSR1, are counted instead of ending the
/// process; a second SIGINT ends it. A signal that is ignored stays ignored.
class InterruptGuard {
 public:
  explicit InterruptGuard(bool with_ranks) {
    if (with_ranks) saved_.push_back({SIGUSR1, {}});
    for (Saved& saved : saved_) {
      struct sigaction ours = {};
      ours.sa_handler = count_interrupt;
      // timeout(1) and a closing terminal send theirs twice; a second SIGINT is a person who no longer waits.
      ours.sa_flags = saved.signal == SIGINT ? SA_RESTART | static_cast<int>(SA_RESETHAND) : SA_RESTART;
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

  std::vector<Saved> saved_ = {{SIGINT, {}}, {SIGTERM, {}}, {SIGHUP, {}}};
  unsigned before_ = interrupts.load(std::memory_order_relaxed);
};

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

/// Progress on stderr: on a terminal a line that is redrawn at most ten times a second, elsewhere ten lines.
class Progress {
 public:
  Progress(std::size_t first, std::size_t steps, bool shown)
      : first_(first), steps_(steps), shown_(shown), terminal_(isatty(STDERR_FILENO) == 1) {}
  ~Progress() { end_line(); }
  Progress(const Progress&) = delete;
  Progress& operator=(const Progress&) = delete;

  /// Ends the line of the bar, so that others can print below it.
  void end_line() {
    if (drawn_) std::fputc('\n', stderr);
    drawn_ = false;
  }

  void update(std::size_t done, const StepResult& result) {
    tokens_ += result.tokens;
    if (!shown_) return;
    if (terminal_) {
      redraw(done, result.loss);
    } else if (done % ((steps_ + 9) / 10) == 0 || done == steps_) {
      std::fprintf(stderr, "%s\n", text(done, result.loss).c_str());
    }
  }

 private:
  std::string text(std::size_t done, double loss) const {
    const double seconds = std::max(seconds_since(start_), 1e-9);
    const double steps_per_second = static_cast<double>(done - first_) / seconds;
    const double rate = tokens_ > 0 ? static_cast<double>(tokens_) / seconds : steps_per_second;
    char line[160];
    std::snprintf(line, sizeof line, "step %zu/%zu  loss %.4g  %.*f %s/s  %s left", done, steps_, loss,
                  rate < 100 ? 1 : 0, rate, tokens_ > 0 ? "tokens" : "steps",
                  duration(static_cast<double>(steps_ - done) / steps_per_second).c_str());
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

  std::size_t first_, steps_;
  bool shown_, terminal_, drawn_ = false;
  std::size_t tokens_ = 0;
  Clock::time_point start_ = Clock::now(), last_ = start_;
};

void check_finite(const char* what, std::size_t step, double number) {
  if (std::isfinite(number)) return;
  detail::fail<std::runtime_error>("fit: the ", what, " of step ", step, " is ", number,
                                   "; DetectAnomaly names the op that makes a nan");
}

/// What one of the ranks has seen counts for all of them.
void agree(Communicator* ranks, std::initializer_list<bool*> flags) {
  if (ranks == nullptr) return;
  std::vector<std::uint64_t> counts;
  for (const bool* flag : flags) counts.push_back(*flag ? 1 : 0);
  counts = all_sum(*ranks, counts);
  auto count = counts.begin();
  for (bool* flag : flags) *flag = *count++ > 0;
}

/// 0, 1, 2, 5, 10, 20, 50, ...
bool is_notch(std::size_t step) {
  while (step > 0 && step % 10 == 0) step /= 10;
  return step == 0 || step == 1 || step == 2 || step == 5;
}

/// Calls what looks at a run and must not change it.
void look(const std::function<void(std::size_t)>& observe, std::size_t step) {
  if (!observe) return;
  Generator other;
  const UseGenerator use(other);
  observe(step);
}

TrainingLog fit_this_rank(std::size_t steps, const std::function<StepResult(std::size_t)>& step,
                          const FitOptions& options) {
  if (!step) detail::fail<ValueError>("fit: step must be a function, got none");
  const bool leads = options.ranks == nullptr || options.ranks->rank() == 0;
  if (options.ranks != nullptr) {
    const std::string random = get_rng_state();
    check_agreement(*options.ranks,
                    {{"xgrad's version", XGRAD_VERSION},
                     {"the precision of matrix products", to_string(matmul_precision_in_use())},
                     {"the number of steps", std::to_string(steps)},
                     {"the first step", std::to_string(options.first_step)},
                     {"the checksum of the default generator's state",
                      std::to_string(detail::checksum(std::as_bytes(std::span(random))))}});
    const std::string processors =
        detail::disagreement(*options.ranks, {{"OpenBLAS's processor", kernels::blas_core_name()},
                                              {"the set of instructions", kernels::instruction_set()}});
    if (!processors.empty() && leads)
      std::fprintf(stderr, "warning: %s; another number of ranks can have other bits\n", processors.c_str());
  }
  detail::MetricsLog metrics(leads ? options.metrics : "", options.first_step, options.about, options.seed);
  TrainingLog log;
  log.steps = options.first_step;
  const InterruptGuard guard(options.ranks != nullptr);
  const Clock::time_point start = Clock::now();
  Progress progress(options.first_step, steps, options.progress && leads);
  const auto due = [&](std::size_t every) { return every != 0 && log.steps % every == 0; };
  while (log.steps < steps && !log.interrupted && !log.stopped) {
    const bool observed = leads && (log.steps == options.first_step || is_notch(log.steps));
    if (observed) look(options.observe, log.steps);
    const Clock::time_point began = Clock::now();
    const StepResult result = step(log.steps);
    if (observed) look(options.observe_step, log.steps);
    metrics.write(log.steps, result, seconds_since(began));
    check_finite("loss", log.steps, result.loss);
    check_finite("gradient norm", log.steps, result.grad_norm.value_or(0));
    log.losses.push_back(result.loss);
    progress.update(++log.steps, result);
    if (options.evaluate && due(options.evaluate_every)) {
      progress.end_line();
      log.stopped = !options.evaluate(log.steps);
    }
    log.interrupted = guard.interrupted();
    bool failed = metrics.failed();
    agree(options.ranks, {&log.stopped, &log.interrupted, &failed});
    const bool last = log.steps == steps || log.interrupted || log.stopped || failed;
    if (!last && !due(options.save_every)) continue;
    if (options.save && leads) options.save(log.steps);
    metrics.flush();
  }
  if (leads && !log.losses.empty()) look(options.observe, log.steps);
  log.seconds = seconds_since(start);
  return log;
}

}  // namespace

TrainingLog fit(std::size_t steps, const std::function<StepResult(std::size_t)>& step,
                const FitOptions& options) {
  try {
    return fit_this_rank(steps, step, options);
  } catch (const std::exception& error) {
    if (options.ranks != nullptr && options.ranks->size() > 1) options.ranks->abort(error.what());
    throw;
  }
}

}  // namespace xgrad
