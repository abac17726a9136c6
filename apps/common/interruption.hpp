#pragma once

// Programs that finish what they hold when they are asked to end.

#include <csignal>
#include <vector>

namespace apps {

/// What check_interruption() throws; run_program() ends the program with 128 and the number of the signal, as
/// a shell does.
struct Interruption {
  int signal;
};

/// For the lifetime of the object, SIGINT (Ctrl-C), SIGTERM and SIGHUP are noted instead of ending the
/// process; a second one of a kind ends it. Ignored signals stay ignored. There must be one object at a time.
class NotedSignals {
 public:
  NotedSignals();
  NotedSignals(const NotedSignals&) = delete;
  NotedSignals& operator=(const NotedSignals&) = delete;
  ~NotedSignals();

 private:
  struct Saved {
    int signal;
    struct sigaction before;
  };

  std::vector<Saved> saved_ = {{SIGINT, {}}, {SIGTERM, {}}, {SIGHUP, {}}};
};

/// Throws Interruption if a signal has been noted.
void check_interruption();

}  // namespace apps
