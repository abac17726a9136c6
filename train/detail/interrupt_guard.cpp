#include "interrupt_guard.hpp"

#include <atomic>

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

}  // namespace

InterruptGuard::InterruptGuard(bool with_ranks) : before_(interrupts.load(std::memory_order_relaxed)) {
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

InterruptGuard::~InterruptGuard() {
  for (const Saved& saved : saved_) sigaction(saved.signal, &saved.before, nullptr);
}

bool InterruptGuard::interrupted() const { return interrupts.load(std::memory_order_relaxed) != before_; }

int InterruptGuard::signal() const { return last_signal.load(std::memory_order_relaxed); }

}  // namespace xgrad::detail
