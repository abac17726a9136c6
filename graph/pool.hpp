#pragma once
// Memory that is handed back is kept by the thread and handed out again: after the first training step, the
// following ones ask the system for nothing.

#include <cstddef>

namespace xgrad {

/// What the calling thread's pool has done so far.
struct MemoryStats {
  std::size_t system_allocations;  ///< blocks asked from the system
  std::ptrdiff_t
      live_blocks;  ///< blocks handed out and not yet handed back (negative: freed for other threads)
  std::size_t cached_bytes;  ///< bytes kept for reuse
};

MemoryStats memory_stats();

/// Gives the calling thread's cached memory back to the system.
void empty_cache();

namespace detail {

/// A block of at least `bytes` bytes, aligned to 64. Throws std::bad_alloc.
void* pool_allocate(std::size_t bytes);

/// Hands back a block that pool_allocate(bytes) gave to any thread.
void pool_release(void* block, std::size_t bytes) noexcept;

/// True while the calling thread ends: nothing may be kept for reuse any more.
bool pool_closed() noexcept;

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
