#pragma once

#include <signal.h>

namespace xgrad_tests {

/// While it lives, a signal has this handler, whatever the process was started with.
class SignalHandler {
 public:
  SignalHandler(int signal, void (*handler)(int)) : signal_(signal) {
    struct sigaction ours = {};
    ours.sa_handler = handler;
    sigemptyset(&ours.sa_mask);
    sigaction(signal_, &ours, &before_);
  }
  SignalHandler(const SignalHandler&) = delete;
  SignalHandler& operator=(const SignalHandler&) = delete;
  ~SignalHandler() { sigaction(signal_, &before_, nullptr); }

 private:
  int signal_;
  struct sigaction before_;
};

}  // namespace xgrad_tests
