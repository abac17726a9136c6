#include "mapped_memory.hpp"

#include <signal.h>
#include <sys/mman.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <cstdint>
#include <system_error>

namespace xgrad::detail {

/// Of the list that the handler reads, which may use neither locks nor memory: a range is never deleted, but
/// taken again.
struct MappedRange {
  std::atomic<bool> is_taken = true, has_failed = false;
  std::atomic<std::uintptr_t> begin = 0, end = 0;  // 0, 0: no memory
  MappedRange* next = nullptr;
};

namespace {

static_assert(std::atomic<bool>::is_always_lock_free && std::atomic<std::uintptr_t>::is_always_lock_free &&
              std::atomic<MappedRange*>::is_always_lock_free);

std::atomic<MappedRange*> first_range = nullptr;
std::uintptr_t page_size = 0;
struct sigaction handler_before = {};

/// Puts zeros in the place of the mapped bytes from the page of `address` on. False if it is not mapped here.
bool replace_by_zeros(std::uintptr_t address) {
  for (MappedRange* range = first_range.load(); range != nullptr; range = range->next) {
    const std::uintptr_t begin = range->begin.load(), end = range->end.load();
    if (address < begin || address >= end) continue;
    range->has_failed.store(true);
    const std::uintptr_t page = address / page_size * page_size;
    return ::mmap(reinterpret_cast<void*>(page), end - page, PROT_READ,
                  MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0) != MAP_FAILED;
  }
  return false;
}

/// What the signal did before: the instruction that failed does so again, or a process sends the signal
/// again.
void handle_as_before(int signal, siginfo_t* info, void* context) {
  if ((handler_before.sa_flags & SA_SIGINFO) != 0) {
    handler_before.sa_sigaction(signal, info, context);
  } else if (handler_before.sa_handler != SIG_DFL && handler_before.sa_handler != SIG_IGN) {
    handler_before.sa_handler(signal);
  } else if (info->si_code > 0 || handler_before.sa_handler == SIG_DFL) {
    ::sigaction(signal, &handler_before, nullptr);
    if (info->si_code <= 0) ::raise(signal);
  }
}

void on_bus_error(int signal, siginfo_t* info, void* context) {
  const int error = errno;
  const bool is_fault = info->si_code > 0;  // otherwise a process has sent it
  if (!is_fault || !replace_by_zeros(reinterpret_cast<std::uintptr_t>(info->si_addr)))
    handle_as_before(signal, info, context);
  errno = error;
}

void install_handler() {
  [[maybe_unused]] static const bool once = [] {
    page_size = static_cast<std::uintptr_t>(::sysconf(_SC_PAGESIZE));
    struct sigaction ours = {};
    ours.sa_sigaction = on_bus_error;
    ours.sa_flags = SA_SIGINFO | SA_ONSTACK | SA_RESTART;
    ::sigaction(SIGBUS, nullptr, &handler_before);  // known before the handler may be called
    ::sigaction(SIGBUS, &ours, nullptr);
    return true;
  }();
}

MappedRange* take_range() {
  for (MappedRange* range = first_range.load(); range != nullptr; range = range->next) {
    if (!range->is_taken.exchange(true)) {
      range->has_failed.store(false);
      return range;
    }
  }
  auto* const range = new MappedRange;
  range->next = first_range.load();
  while (!first_range.compare_exchange_weak(range->next, range)) continue;
  return range;
}

void give_back(MappedRange* range) {
  range->end.store(0);
  range->begin.store(0);
  range->is_taken.store(false);
}

}  // namespace

MappedMemory::MappedMemory(int file, std::size_t size) {
  if (size == 0) return;  // which mmap refuses
  install_handler();
  range_ = take_range();
  void* const first = ::mmap(nullptr, size, PROT_READ, MAP_PRIVATE, file, 0);
  if (first == MAP_FAILED) {
    const int error = errno;
    give_back(range_);
    throw std::system_error(error, std::system_category());
  }
  bytes_ = {static_cast<const std::byte*>(first), size};
  const auto begin = reinterpret_cast<std::uintptr_t>(first);
  range_->begin.store(begin);
  range_->end.store(begin + size);
}

MappedMemory::~MappedMemory() {
  if (range_ == nullptr) return;
  give_back(range_);
  ::munmap(const_cast<std::byte*>(bytes_.data()), bytes_.size());
}

bool MappedMemory::has_failed() const { return range_ != nullptr && range_->has_failed.load(); }

}  // namespace xgrad::detail
