#pragma once

#include <atomic>
#include <cstdint>
#include <utility>

// A cross compiler may find this header of the host's C library.
#if defined(__GLIBC__) && __has_include(<sys/single_threaded.h>)
#define XGRAD_KNOWS_ITS_THREADS
#include <sys/single_threaded.h>
#endif

namespace xgrad::detail {

/// True if the process never had a second thread (false if the C library cannot tell).
inline bool single_threaded() noexcept {
#ifdef XGRAD_KNOWS_ITS_THREADS
  return __libc_single_threaded != 0;
#else
  return false;
#endif
}

/// A reference count that is atomic only in multithreaded processes, as that of libstdc++'s shared_ptr.
class RefCount {
 public:
  void add() noexcept {
    if (single_threaded()) {
      count_.store(count_.load(std::memory_order_relaxed) + 1, std::memory_order_relaxed);
    } else {
      count_.fetch_add(1, std::memory_order_relaxed);
    }
  }

  /// Releases one owner; returns true if it was the last.
  bool drop() noexcept {
    if (single_threaded()) {
      const std::uint32_t left = count_.load(std::memory_order_relaxed) - 1;
      count_.store(left, std::memory_order_relaxed);
      return left == 0;
    }
    return count_.fetch_sub(1, std::memory_order_acq_rel) == 1;
  }

  std::uint32_t count() const noexcept { return count_.load(std::memory_order_acquire); }
  bool unique() const noexcept { return count_.load(std::memory_order_acquire) == 1; }

 private:
  std::atomic<std::uint32_t> count_{0};
};

/// Shared ownership of an object with a member `RefCount refs`; the last owner calls dispose(object).
template <class U>
class Ref {
 public:
  Ref() = default;
  explicit Ref(U* object) noexcept : object_(object) {
    if (object_ != nullptr) object_->refs.add();
  }
  Ref(const Ref& other) noexcept : Ref(other.object_) {}
  Ref(Ref&& other) noexcept : object_(std::exchange(other.object_, nullptr)) {}
  Ref& operator=(Ref other) noexcept {
    std::swap(object_, other.object_);
    return *this;
  }
  /// Most are empty here: only the others are worth a call.
  [[gnu::always_inline]] ~Ref() {
    if (object_ != nullptr) drop(object_);
  }

  U* get() const noexcept { return object_; }
  U* operator->() const noexcept { return object_; }
  U& operator*() const noexcept { return *object_; }
  explicit operator bool() const noexcept { return object_ != nullptr; }

 private:
  [[gnu::noinline]] static void drop(U* object) noexcept {
    if (object->refs.drop()) dispose(object);
  }

  U* object_ = nullptr;
};

}  // namespace xgrad::detail
