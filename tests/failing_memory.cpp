#include "failing_memory.hpp"

#include <cstdlib>
#include <new>

namespace {

struct Plan {
  bool active, for_good, failed;
  std::size_t left;  // allocations that succeed
  std::size_t done;
};
constinit thread_local Plan plan{};

bool fails() noexcept {
  if (!plan.active) return false;
  ++plan.done;
  if (plan.left > 0) {
    --plan.left;
    return false;
  }
  plan.failed = true;
  plan.active = plan.for_good;
  return true;
}

/// Null if it fails.
void* allocated(std::size_t bytes, std::size_t alignment) noexcept {
  const std::size_t whole = bytes == 0 ? alignment : (bytes + alignment - 1) / alignment * alignment;
  return fails() ? nullptr : std::aligned_alloc(alignment, whole);
}

void* required(void* block) {
  if (block == nullptr) throw std::bad_alloc();
  return block;
}

}  // namespace

void* operator new(std::size_t bytes) { return required(allocated(bytes, __STDCPP_DEFAULT_NEW_ALIGNMENT__)); }
void* operator new(std::size_t bytes, std::align_val_t alignment) {
  return required(allocated(bytes, static_cast<std::size_t>(alignment)));
}
void* operator new(std::size_t bytes, const std::nothrow_t&) noexcept {
  return allocated(bytes, __STDCPP_DEFAULT_NEW_ALIGNMENT__);
}
void* operator new(std::size_t bytes, std::align_val_t alignment, const std::nothrow_t&) noexcept {
  return allocated(bytes, static_cast<std::size_t>(alignment));
}
void operator delete(void* block) noexcept { std::free(block); }
void operator delete(void* block, std::size_t) noexcept { std::free(block); }
void operator delete(void* block, std::align_val_t) noexcept { std::free(block); }
void operator delete(void* block, std::size_t, std::align_val_t) noexcept { std::free(block); }

namespace xgrad_tests {

FailingMemory::FailingMemory(std::size_t after, bool for_good) { plan = {true, for_good, false, after, 0}; }
FailingMemory::~FailingMemory() { plan.active = false; }
bool FailingMemory::failed() const { return plan.failed; }
std::size_t FailingMemory::count() const { return plan.done; }

}  // namespace xgrad_tests
