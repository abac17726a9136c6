#pragma once

#include <atomic>
#include <cstdint>
#include <utility>

// How precisely products of float matrices are asked for, by a thread or by the process.
namespace xgrad::kernels {

/// How many bfloat16 numbers stand for each float in a product; 0: the float itself.
using Parts = std::uint8_t;

extern constinit std::atomic<Parts> parts_of_process;
extern constinit thread_local std::int16_t parts_of_thread;  ///< negative: those of the process count

/// What was asked for: on this thread, or else for the process, which begins with 0. A parallel_for hands it
/// on to its threads.
inline Parts parts_asked() {
  const std::int16_t here = parts_of_thread;
  return here < 0 ? parts_of_process.load(std::memory_order_relaxed) : static_cast<Parts>(here);
}

/// Asks on this thread, or not any more if `parts` is negative, and returns what was asked before.
inline std::int16_t ask_on_this_thread(std::int16_t parts) { return std::exchange(parts_of_thread, parts); }

/// While one lives, this thread asks for these parts.
class PartsScope {
 public:
  explicit PartsScope(Parts parts) : before_(ask_on_this_thread(parts)) {}
  ~PartsScope() { ask_on_this_thread(before_); }
  PartsScope(const PartsScope&) = delete;
  PartsScope& operator=(const PartsScope&) = delete;

 private:
  std::int16_t before_;
};

}  // namespace xgrad::kernels
