#pragma once

// Programs that finish what they hold when they are asked to end.

#include <xgrad/graph/watch.hpp>
#include <xgrad/train/detail/interrupt_guard.hpp>

namespace apps {

/// What check_interruption() throws; run_program() ends the program with 128 and the number of the signal, as
/// a shell does, and a line that says so.
struct Interruption {
  int signal;
  const char* what_is_lost = "";  ///< told in that line
};

/// For the lifetime of the object, signals that ask the process to end are noted instead. There must be one
/// object at a time.
class NotedSignals {
 public:
  NotedSignals();
  NotedSignals(const NotedSignals&) = delete;
  NotedSignals& operator=(const NotedSignals&) = delete;
  ~NotedSignals();

 private:
  xgrad::detail::InterruptGuard guard_{false};
};

/// Throws Interruption if a signal has been noted.
void check_interruption(const char* what_is_lost = "");

/// For the lifetime of the object, check_interruption() follows each op of its thread, as in the long forward
/// pass of a large model.
class InterruptibleOps : public xgrad::Watcher {
 public:
  using Watcher::on_op;
  void on_op(const xgrad::OpEvent<float>&) override { check_interruption(); }
};

}  // namespace apps
