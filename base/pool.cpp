#include "pool.hpp"

#include <atomic>
#include <bit>
#include <cstdint>
#include <new>
#include <utility>

#ifdef __GLIBC__
#include <malloc.h>
#endif

#include "detail/arrays/value.hpp"
#include "detail/arrays/vectorized.hpp"

#ifdef __linux__
// The sanitizers', where the program has them; xgrad itself may be compiled without.
extern "C" [[gnu::weak]] void __asan_init();
extern "C" [[gnu::weak]] void __tsan_init();
extern "C" [[gnu::weak]] void __msan_init();
#endif

namespace xgrad {
namespace {

constexpr std::size_t alignment = 64;
constexpr std::size_t largest_cached = std::size_t{1} << (sizeof(std::size_t) > 4 ? 32 : 30);
constinit std::atomic<std::size_t> cache_limit = std::size_t{1} << 30;  // bytes a thread keeps
constexpr std::size_t class_count = 16 + 8 * 22 + 1;

struct SizeClass {
  std::size_t index;
  std::size_t capacity;  // bytes
};

/// Multiples of 64 up to 1 KiB, then eight steps to each doubling, so that at most an eighth is wasted.
SizeClass size_class(std::size_t bytes) {
  if (bytes <= 1024) {
    const std::size_t blocks = bytes == 0 ? 1 : (bytes + alignment - 1) / alignment;
    return {blocks - 1, blocks * alignment};
  }
  const std::size_t shift = static_cast<std::size_t>(std::bit_width(bytes - 1)) - 4;
  const std::size_t step = ((bytes - 1) >> shift) + 1;  // 9 to 16
  return {16 + (shift - 7) * 8 + (step - 9), step << shift};
}

/// Whether a sanitizer of memory or threads observes the process. Nothing is cached then, and no block is
/// larger than requested: they detect every use of memory after its release or past its end.
bool is_sanitized() noexcept {
#if defined(XGRAD_SANITIZED)
  return true;
#elif defined(__linux__)
  return __asan_init != nullptr || __tsan_init != nullptr || __msan_init != nullptr;
#else
  return false;
#endif
}

struct FreeBlock {
  FreeBlock* next;
};

/// Plain data, so that reaching it costs no initialisation check; ThreadExit empties it.
struct Pool {
  FreeBlock* free[class_count];
  std::size_t cached_bytes;
  std::size_t system_allocations;
  std::ptrdiff_t live_blocks;
  bool registered;  // for emptying at thread exit
  bool closed;      // caches nothing
};
constinit thread_local Pool pool{};

void drain() noexcept {
  for (FreeBlock*& list : pool.free) {
    while (list != nullptr) {
      FreeBlock* block = list;
      list = block->next;
      ::operator delete (block, std::align_val_t{alignment});
    }
  }
  pool.cached_bytes = 0;
}

/// Blocks freed after this thread's pool is gone go straight to the system.
struct ThreadExit {
  ~ThreadExit() {
    pool.closed = true;
    detail::release_cached_values();
    drain();
  }
};

void register_thread_exit() {
  thread_local ThreadExit at_exit;
  static_cast<void>(&at_exit);
  pool.registered = true;
  pool.closed = is_sanitized();
}

void* allocate_from_system(std::size_t bytes) {
  if (!pool.registered) register_thread_exit();
  void* block = ::operator new (bytes, std::align_val_t{alignment});
  ++pool.system_allocations;
  return block;
}

}  // namespace

namespace detail {

void* pool_allocate(std::size_t bytes) {
  if (bytes > largest_cached) {
    void* block = allocate_from_system(bytes);
    ++pool.live_blocks;
    return block;
  }
  const SizeClass wanted = size_class(bytes);
  FreeBlock*& list = pool.free[wanted.index];
  FreeBlock* block = list;
  if (block == nullptr) {
    void* fresh = allocate_from_system(is_sanitized() ? bytes : wanted.capacity);
    ++pool.live_blocks;
    return fresh;
  }
  list = block->next;
  pool.cached_bytes -= wanted.capacity;
  ++pool.live_blocks;
  return block;
}

void pool_release(void* block, std::size_t bytes) noexcept {
  --pool.live_blocks;
  if (bytes > largest_cached || !may_keep()) {
    ::operator delete (block, std::align_val_t{alignment});
    return;
  }
  const SizeClass given = size_class(bytes);
  if (pool.cached_bytes + given.capacity > cache_limit.load(std::memory_order_relaxed)) {
    ::operator delete (block, std::align_val_t{alignment});
    return;
  }
  FreeBlock*& list = pool.free[given.index];
  list = ::new (block) FreeBlock{list};
  pool.cached_bytes += given.capacity;
}

bool may_keep() noexcept {
  if (!pool.registered) register_thread_exit();
  return !pool.closed;
}

}  // namespace detail

MemoryStats memory_stats() { return {pool.system_allocations, pool.live_blocks, pool.cached_bytes}; }

void set_cache_limit(std::size_t bytes) noexcept { cache_limit.store(bytes, std::memory_order_relaxed); }

void empty_cache() {
  detail::release_cached_values();
  drain();
#ifdef __GLIBC__
  ::malloc_trim(0);  // the C library keeps small blocks for itself
#endif
}

}  // namespace xgrad
