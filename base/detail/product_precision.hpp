#pragma once

#include <atomic>
#include <cstdint>
#include <utility>

// Whether factors of float matrix products may be rounded (MatmulPrecision), per thread or process.
namespace xgrad::detail {

/// An option of a thread: yes, no or that of the process.
enum class Rounding : std::int8_t { of_process = -1, off = 0, on = 1 };

extern constinit std::atomic<bool> process_rounds_products;
extern constinit thread_local Rounding rounding_of_thread;

/// What this thread requests, or else the process (default false). parallel_for passes it to its threads.
inline bool products_may_be_rounded() {
  return rounding_of_thread == Rounding::of_process ? process_rounds_products.load(std::memory_order_relaxed)
                                                    : rounding_of_thread == Rounding::on;
}

/// Sets what this thread requests for the lifetime of the object.
class RoundingScope {
 public:
  explicit RoundingScope(bool rounds)
      : before_(std::exchange(rounding_of_thread, rounds ? Rounding::on : Rounding::off)) {}
  ~RoundingScope() { rounding_of_thread = before_; }
  RoundingScope(const RoundingScope&) = delete;
  RoundingScope& operator=(const RoundingScope&) = delete;

 private:
  Rounding before_;
};

}  // namespace xgrad::detail
