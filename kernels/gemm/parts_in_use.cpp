#include "parts_in_use.hpp"

#include "bfloat16.hpp"
#include "onednn_gemm.hpp"

namespace xgrad::kernels {

namespace {

constinit std::atomic<bool> is_forced{false};

/// Intel's processors multiply vectors of bfloat16 numbers at half the rate of float vectors, AMD's at twice
/// the rate.
bool has_fast_vectors() {
#if defined(__x86_64__)
  static const bool found = __builtin_cpu_is("amd") && has_bfloat16_instructions();
  return found;
#else
  return false;
#endif
}

}  // namespace

detail::Parts parts_in_use(detail::Parts asked) {
  if (asked == 2)
    return has_matrix_unit() || (has_onednn() && is_forced.load(std::memory_order_relaxed)) ? 2 : 0;
  return asked == 1 && (has_matrix_unit() || has_fast_vectors() || is_forced.load(std::memory_order_relaxed))
             ? 1
             : 0;
}

void force_parts(bool forced) { is_forced.store(forced, std::memory_order_relaxed); }

}  // namespace xgrad::kernels
