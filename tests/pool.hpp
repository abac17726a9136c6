#pragma once

#include <xgrad/base/pool.hpp>

namespace xgrad_tests {

/// False in builds where every block goes straight back to the system.
inline bool pool_keeps_memory() {
  xgrad::detail::pool_release(xgrad::detail::pool_allocate(1), 1);
  return xgrad::memory_stats().cached_bytes > 0;
}

}  // namespace xgrad_tests
