#pragma once
// Threads cache released memory and reuse it: after the first training step, the following ones allocate
// nothing from the system.

#include <cstddef>

namespace xgrad {

/// Statistics of the calling thread's pool.
struct [[nodiscard]] MemoryStats {
  /// Blocks allocated from the system.
  std::size_t system_allocations;
  /// Blocks allocated and not yet released; negative if more were released here for other threads. Small
  /// values cached with their shapes count until empty_cache().
  std::ptrdiff_t live_blocks;
  /// Bytes of cached blocks.
  std::size_t cached_bytes;
};

/// Statistics of the calling thread.
MemoryStats memory_stats();

/// Sets how many bytes of released memory each thread caches from now on, 1 GiB by default. With fewer, what
/// a training step allocates in one size and later in another takes less memory, and the system has to
/// provide more of it anew.
void set_cache_limit(std::size_t bytes) noexcept;

/// Returns the calling thread's cached memory to the system, and the memory that the C library caches for the
/// process: slow, not for an inner loop.
void empty_cache();

namespace detail {

/// Allocates at least `bytes` bytes, aligned to 64. Throws std::bad_alloc.
void* pool_allocate(std::size_t bytes);

/// Releases a block that pool_allocate(bytes) returned to any thread.
void pool_release(void* block, std::size_t bytes) noexcept;

/// Whether the calling thread may cache memory: false once it is ending, and under a sanitizer.
bool may_keep() noexcept;

}  // namespace detail

/// A standard allocator over the pool. Its type, and therefore Array's, is the same under all compiler flags.
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
