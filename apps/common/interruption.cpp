#include "interruption.hpp"

#include <atomic>

namespace apps {
namespace {

std::atomic<int> noted{0};
static_assert(std::atomic<int>::is_always_lock_free);  // as signal handlers need

void note(int signal) { noted.store(signal, std::memory_order_relaxed); }

}  // namespace

NotedSignals::NotedSignals() {
  noted = 0;
  for (Saved& saved : saved_) {
    struct sigaction ours = {};
    ours.sa_handler = note;
    ours.sa_flags = static_cast<int>(SA_RESETHAND) | SA_RESTART;
    sigemptyset(&ours.sa_mask);
    sigaction(saved.signal, nullptr, &saved.before);
    if (saved.before.sa_handler != SIG_IGN) sigaction(saved.signal, &ours, nullptr);
  }
}

NotedSignals::~NotedSignals() {
  noted = 0;
  for (const Saved& saved : saved_) sigaction(saved.signal, &saved.before, nullptr);
}

void check_interruption() {
  if (const int signal = noted.load(std::memory_order_relaxed)) throw Interruption{signal};
}

}  // namespace apps
