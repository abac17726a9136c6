#pragma once

#include <csignal>
#include <vector>

namespace xgrad::detail {

/// While it lives, SIGINT, SIGTERM and SIGHUP, and with ranks SIGUSR1, are counted instead of ending the
/// process; a second SIGINT ends it. A signal that is ignored stays ignored.
class InterruptGuard {
 public:
  explicit InterruptGuard(bool with_ranks);
  ~InterruptGuard();
  InterruptGuard(const InterruptGuard&) = delete;
  InterruptGuard& operator=(const InterruptGuard&) = delete;

  bool interrupted() const;

 private:
  struct Saved {
    int signal;
    struct sigaction before;
  };

  std::vector<Saved> saved_ = {{SIGINT, {}}, {SIGTERM, {}}, {SIGHUP, {}}};
  unsigned before_;
};

}  // namespace xgrad::detail
