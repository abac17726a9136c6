#pragma once
// Memory that is handed back is kept by the thread and handed out again: after the first training step, the
// following ones ask the system for nothing.

#include <cstddef>

namespace xgrad {

/// What the calling thread's pool has done so far.
struct MemoryStats {
  /// Blocks asked from the system.
  std::size_t system_allocations;
  /// Blocks handed out and not yet handed back; negative if more were freed here for other threads. Small
  /// values that wait for reuse with their shapes count until empty_cache().
  std::ptrdiff_t live_blocks;
  /// Bytes of blocks kept for reuse.
  std::size_t cached_bytes;
};

/// Of the calling thread.
MemoryStats memory_stats();

/// Gives the calling thread's cached memory back to the system, with what the C library keeps for the
/// process: not for a hot loop.
void empty_cache();

namespace detail {

/// A block of at least `bytes` bytes, aligned to 64. Throws std::bad_alloc.
void* pool_allocate(std::size_t bytes);

/// Hands back a block that pool_allocate(bytes) gave to any thread.
void pool_release(void* block, std::size_t bytes) noexcept;

/// Whether the calling thread may keep anything for reuse: not any more while it ends.
bool may_keep() noexcept;

}  // namespace detail

/// A standard allocator over the pool. Its type, and so that of Array, is the same under all compiler flags.
template <class T>
class PoolAllocator {
 public:
  using value_type = T;

  PoolAllocator() = default;
  template <class U>
  PoolAllocator(const PoolAllocator<U>&) noexcept {}

  T* allocate(std::size_t count) {
    if (count > static_cast<std::size_t>(-1) / 2 / sizeof(T))
      count = static_cast<std::size_t>(-1) / 2 / sizeof(T);
    return static_cast<T*>(detail::pool_allocate(count * sizeof(T)));
  }
  void deallocate(T* block, std::size_t count) noexcept { detail::pool_release(block, count * sizeof(T)); }

  friend bool operator==(const PoolAllocator&, const PoolAllocator&) noexcept { return true; }
};

}  // namespace xgrad
