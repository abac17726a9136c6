#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>

#include "measuring.hpp"

namespace bench {

enum class Task { step, forward };

inline constexpr Task tasks[] = {Task::step, Task::forward};

inline const char* name_of(Task task) { return task == Task::step ? "step" : "forward"; }

inline constexpr std::size_t rounds = 9;

/// A task of one library: so many batches a round, of so many calls that reading the clock does not count.
class Measurement {
 public:
  Measurement(Process& process, Task task, double seconds) : process_(&process), task_(task) {
    constexpr double shortest_batch = 1, shortest_estimate = 5, warm_up = 2;  // ms
    run_once(1);  // the first call fills the pools
    double time = run_once(1);
    for (std::size_t calls = 2; time * static_cast<double>(calls) < shortest_estimate; calls *= 2) {
      time = run_once(calls);
    }
    calls_ = static_cast<std::size_t>(std::max(1.0, std::ceil(shortest_batch / time)));
    const double batch_time = time * static_cast<double>(calls_);
    warm_up_ = time < 10 * warm_up ? warm_up : 0;  // a long call warms itself up
    batches_ = static_cast<std::size_t>(std::max(1.0, 1e3 * seconds / rounds / batch_time));
  }

  void round() { append(times_, run(*process_, name_of(task_), calls_, batches_, warm_up_)); }

  Task task() const { return task_; }
  const Process& process() const { return *process_; }
  const Times& times() const { return times_; }

 private:
  double run_once(std::size_t calls) { return run(*process_, name_of(task_), calls, 1, 0).wall[0]; }

  Process* process_;
  Task task_;
  std::size_t calls_, batches_;
  double warm_up_;
  Times times_;
};

}  // namespace bench
