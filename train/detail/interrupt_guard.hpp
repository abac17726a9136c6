#pragma once

namespace xgrad::detail {

/// For the lifetime of the object, counts SIGINT, SIGTERM and SIGHUP, and if asked SIGUSR1, instead of
/// ending the process; a second SIGINT ends it. Ignored signals stay ignored. The handlers are the process's:
/// the first of several objects installs them, and the last one, in any order, restores those before.
class InterruptGuard {
 public:
  explicit InterruptGuard(bool with_sigusr1);
  ~InterruptGuard();
  InterruptGuard(const InterruptGuard&) = delete;
  InterruptGuard& operator=(const InterruptGuard&) = delete;

  bool interrupted() const;

  /// The last signal, while interrupted.
  int signal() const;

 private:
  bool with_sigusr1_;
  unsigned before_;
};

}  // namespace xgrad::detail
