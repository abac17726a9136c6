#include "interruption.hpp"

namespace apps {
namespace {

const xgrad::detail::InterruptGuard* noted = nullptr;

}  // namespace

NotedSignals::NotedSignals() { noted = &guard_; }

NotedSignals::~NotedSignals() { noted = nullptr; }

void check_interruption() {
  if (noted != nullptr && noted->interrupted()) throw Interruption{noted->signal()};
}

}  // namespace apps
