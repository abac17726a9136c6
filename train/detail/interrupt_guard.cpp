#include "interrupt_guard.hpp"

#include <atomic>
#include <map>
#include <mutex>

namespace xgrad::detail {
namespace {

std::atomic<unsigned> interrupts{0};
std::atomic<int> last_signal{0};
static_assert(std::atomic<unsigned>::is_always_lock_free);  // as signal handlers need
static_assert(std::atomic<int>::is_always_lock_free);

void count_interrupt(int signal) {
  last_signal.store(signal, std::memory_order_relaxed);
  interrupts.fetch_add(1, std::memory_order_relaxed);
}

/// The handler of a signal, of which there is one in the process.
struct Owned {
  int guards = 0;  ///< that are alive
  struct sigaction before = {};
};

std::mutex handlers;
std::map<int, Owned>& owned_signals() {
  static std::map<int, Owned> owned;
  return owned;
}

void acquire(int signal) {
  Owned& owned = owned_signals()[signal];
  if (owned.guards++ > 0) return;
  struct sigaction ours = {};
  ours.sa_handler = count_interrupt;
  // timeout(1) and a closing terminal send theirs twice; a second SIGINT is a person who no longer waits.
  ours.sa_flags = signal == SIGINT ? SA_RESTART | static_cast<int>(SA_RESETHAND) : SA_RESTART;
  sigemptyset(&ours.sa_mask);
  sigaction(signal, nullptr, &owned.before);
  if (owned.before.sa_handler != SIG_IGN) sigaction(signal, &ours, nullptr);
}

void release(int signal) {
  Owned& owned = owned_signals()[signal];
  if (--owned.guards == 0) sigaction(signal, &owned.before, nullptr);
}

}  // namespace

InterruptGuard::InterruptGuard(bool with_ranks) : before_(interrupts.load(std::memory_order_relaxed)) {
  if (with_ranks) signals_.push_back(SIGUSR1);
  const std::lock_guard lock(handlers);
  for (const int signal : signals_) acquire(signal);
}

InterruptGuard::~InterruptGuard() {
  const std::lock_guard lock(handlers);
  for (const int signal : signals_) release(signal);
}

bool InterruptGuard::interrupted() const { return interrupts.load(std::memory_order_relaxed) != before_; }

int InterruptGuard::signal() const { return last_signal.load(std::memory_order_relaxed); }

}  // namespace xgrad::detail
