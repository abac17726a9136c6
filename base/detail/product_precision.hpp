#pragma once

#include <atomic>
#include <cstdint>
#include <utility>

// The requested precision of float matrix products, per thread or process.
namespace xgrad::detail {

/// Number of bfloat16 numbers per float in a product; 0: float32.
using Parts = std::uint8_t;

extern constinit std::atomic<Parts> parts_of_process;
extern constinit thread_local std::int16_t parts_of_thread;  ///< negative: use that of the process

/// The requested precision: that of this thread, or else of the process (default 0). parallel_for passes it
/// to its threads.
inline Parts parts_asked() {
  const std::int16_t here = parts_of_thread;
  return here < 0 ? parts_of_process.load(std::memory_order_relaxed) : static_cast<Parts>(here);
}

/// Sets this thread's precision, or unsets it if `parts` is negative, and returns the previous one.
inline std::int16_t ask_on_this_thread(std::int16_t parts) { return std::exchange(parts_of_thread, parts); }

/// Sets this thread's precision for the lifetime of the object.
class PartsScope {
 public:
  explicit PartsScope(Parts parts) : before_(ask_on_this_thread(parts)) {}
  ~PartsScope() { ask_on_this_thread(before_); }
  PartsScope(const PartsScope&) = delete;
  PartsScope& operator=(const PartsScope&) = delete;

 private:
  std::int16_t before_;
};

}  // namespace xgrad::detail
