#include "trainer.hpp"

#include <chrono>
#include <cmath>
#include <stdexcept>

#include "../base/detail/system/seconds_since.hpp"
#include "../base/error.hpp"
#include "../base/random.hpp"
#include "detail/fit_loop.hpp"
#include "detail/interrupt_guard.hpp"
#include "detail/metrics_log.hpp"
#include "detail/progress_bar.hpp"

namespace xgrad {
namespace {

using Clock = std::chrono::steady_clock;

void check_finite(const char* what, std::size_t step, double number) {
  if (std::isfinite(number)) return;
  detail::fail<std::runtime_error>(
      "fit: the ", what, " of step ", step, " is ", number,
      "; DetectAnomaly, in programs --detect-anomaly, names the op that makes a nan");
}

/// 0, 1, 2, 5, 10, 20, 50, ...
bool is_observed(std::size_t step) {
  while (step > 0 && step % 10 == 0) step /= 10;
  return step == 0 || step == 1 || step == 2 || step == 5;
}

/// Calls a function that observes the run, with another default generator: it changes nothing.
void call_observer(const std::function<void(std::size_t)>& observe, std::size_t step) {
  if (!observe) return;
  Generator other;
  const UseGenerator use(other);
  observe(step);
}

}  // namespace

TrainingLog detail::fit_loop(std::size_t steps, const std::function<StepResult(std::size_t)>& step,
                             const FitOptions& options, const AgreeOnEnd& agree) {
  if (!step) detail::fail<ValueError>("fit: step must be a function, got none");
  if (options.evaluate && options.evaluate_every == 0)
    detail::fail<ValueError>("fit: evaluate_every must be at least 1, got 0: evaluate would not be called");
  detail::MetricsLog metrics(options.metrics, options.first_step, options.about, options.seed);
  TrainingLog log;
  log.steps = options.first_step;
  const detail::InterruptGuard guard(agree != nullptr);
  const Clock::time_point start = Clock::now();
  detail::ProgressBar progress(options.first_step, steps, options.evaluate ? options.evaluate_every : 0,
                               options.progress);
  const auto due = [&](std::size_t every) { return every != 0 && log.steps % every == 0; };
  while (log.steps < steps && !log.interrupted && !log.stopped) {
    const bool observed = log.steps == options.first_step || is_observed(log.steps);
    if (observed) call_observer(options.observe, log.steps);
    const Clock::time_point began = Clock::now();
    const StepResult result = step(log.steps);
    if (observed) call_observer(options.observe_step, log.steps);
    metrics.write(log.steps, result, detail::seconds_since(began));
    check_finite("loss", log.steps, result.loss);
    check_finite("gradient norm", log.steps, result.grad_norm.value_or(0));
    log.losses.push_back(result.loss);
    progress.update(++log.steps, result.loss, result.tokens);
    if (options.evaluate && due(options.evaluate_every)) {
      progress.end_line();
      const Clock::time_point evaluation = Clock::now();
      log.stopped = !options.evaluate(log.steps);
      progress.evaluated(detail::seconds_since(evaluation));
    }
    log.interrupted = guard.interrupted();
    if (log.interrupted) log.signal = guard.signal();
    bool failed = metrics.failed();
    if (agree) agree(log.stopped, log.interrupted, failed);
    const bool last = log.steps == steps || log.interrupted || log.stopped || failed;
    if (!last && !due(options.save_every)) continue;
    if (options.save) options.save(log.steps);
    metrics.flush();
  }
  if (!log.losses.empty()) call_observer(options.observe, log.steps);
  log.seconds = detail::seconds_since(start);
  return log;
}

TrainingLog fit(std::size_t steps, const std::function<StepResult(std::size_t)>& step,
                const FitOptions& options) {
  return detail::fit_loop(steps, step, options, nullptr);
}

}  // namespace xgrad
