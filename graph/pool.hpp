#pragma once
// Memory that is handed back is kept by the thread and handed out again: after the first training step, the
// following ones ask the system for nothing.

#include <cstddef>
#include <map>
#include <unordered_map>
#include <vector>

#include "scoped_value.hpp"

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

/// Whether the calling thread may keep anything for reuse: not any more while it ends, nor while a
/// CaptureMemory is used.
bool may_keep() noexcept;

/// The blocks of a captured step. Those that are handed back stay here until this goes, and are handed out to
/// the step alone; what is still in use then becomes the pool's like any other block.
class CaptureMemory {
 public:
  struct Block {
    std::size_t bytes;
    bool in_use;
    bool written;        ///< by a call that is captured, since it was handed out
    bool is_used_again;  ///< it was handed out, and back, before
  };

  /// While one lives, blocks are handed out for the first time.
  class NewBlocks : ScopedValue<bool> {
   public:
    explicit NewBlocks(CaptureMemory& memory) noexcept : ScopedValue(memory.only_new_, true) {}
  };

  CaptureMemory() = default;
  ~CaptureMemory();
  CaptureMemory(const CaptureMemory&) = delete;
  CaptureMemory& operator=(const CaptureMemory&) = delete;

  /// The block that an address lies in, or null.
  Block* find(const void* address);

  /// By where they begin.
  std::map<const std::byte*, Block>& blocks() { return blocks_; }

  void* take(std::size_t bytes);
  /// False if the block is none of these.
  bool put_back(void* block) noexcept;

 private:
  std::map<const std::byte*, Block> blocks_;
  std::unordered_map<std::size_t, std::vector<void*>> free_;  // by their bytes
  bool only_new_ = false;
};

/// While one lives, the calling thread's blocks come from this memory, or from the pool again if it is null.
class [[nodiscard]] UseMemory {
 public:
  explicit UseMemory(CaptureMemory* memory) noexcept;
  ~UseMemory();
  UseMemory(const UseMemory&) = delete;
  UseMemory& operator=(const UseMemory&) = delete;

 private:
  CaptureMemory* before_;
};

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
