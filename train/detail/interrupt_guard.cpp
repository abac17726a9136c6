#include "interrupt_guard.hpp"

#include <atomic>
#include <csignal>
#include <iterator>
#include <mutex>
#include <span>

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
struct Handler {
  int signal;
  int guards = 0;  ///< that are alive
  struct sigaction before = {};
};

// SIGUSR1, which only guards that ask for it count, is the last one. No list that grows: a guard that had no
// memory for it would leave handlers behind.
Handler handlers[] = {{SIGINT}, {SIGTERM}, {SIGHUP}, {SIGUSR1}};
std::mutex handlers_mutex;

void acquire(Handler& handler) {
  if (handler.guards++ > 0) return;
  struct sigaction ours = {};
  ours.sa_handler = count_interrupt;
  // timeout(1) and a closing terminal send theirs twice; a second SIGINT is a person who no longer waits.
  ours.sa_flags = handler.signal == SIGINT ? SA_RESTART | static_cast<int>(SA_RESETHAND) : SA_RESTART;
  sigemptyset(&ours.sa_mask);
  sigaction(handler.signal, nullptr, &handler.before);
  if (handler.before.sa_handler != SIG_IGN) sigaction(handler.signal, &ours, nullptr);
}

void release(Handler& handler) {
  if (--handler.guards == 0) sigaction(handler.signal, &handler.before, nullptr);
}

std::span<Handler> handlers_of(bool with_sigusr1) {
  return std::span(handlers).first(std::size(handlers) - (with_sigusr1 ? 0 : 1));
}

}  // namespace

InterruptGuard::InterruptGuard(bool with_sigusr1)
    : with_sigusr1_(with_sigusr1), before_(interrupts.load(std::memory_order_relaxed)) {
  const std::lock_guard lock(handlers_mutex);
  for (Handler& handler : handlers_of(with_sigusr1_)) acquire(handler);
}

InterruptGuard::~InterruptGuard() {
  const std::lock_guard lock(handlers_mutex);
  for (Handler& handler : handlers_of(with_sigusr1_)) release(handler);
}

bool InterruptGuard::interrupted() const { return interrupts.load(std::memory_order_relaxed) != before_; }

int InterruptGuard::signal() const { return last_signal.load(std::memory_order_relaxed); }

}  // namespace xgrad::detail
