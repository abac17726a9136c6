#include "interruption.hpp"

namespace apps {
namespace {

const xgrad::detail::InterruptGuard* noted = nullptr;

}  // namespace

NotedSignals::NotedSignals() { noted = &guard_; }

NotedSignals::~NotedSignals() { noted = nullptr; }

void check_interruption(const char* what_is_lost) {
  if (noted != nullptr && noted->interrupted()) throw Interruption{noted->signal(), what_is_lost};
}

}  // namespace apps
