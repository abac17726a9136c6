#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <type_traits>
#include <typeinfo>
#include <vector>

// Who captures a step is handed each call of a kernel, to make it and to keep it, so that it can make all of
// them again. A kernel that is called by another one is part of that one's call.
namespace xgrad::kernels {

/// A call of a kernel, or of a function that does what a kernel would, with its arguments.
class Call {
 public:
  virtual ~Call() = default;
  virtual void run() = 0;
};

/// An array that a call reads, or writes and perhaps reads.
struct Operand {
  const void* data;  ///< null if an array that the call can do without is not there
  bool written;
};

/// The arrays of a call. An argument that is not known to this list refuses the capture.
class Operands {
 public:
  template <class... A>
  explicit Operands(const A&... arguments) {
    (add(arguments), ...);
  }

  /// An argument of its own type lists the arrays in it: `void list_arrays(Operands&, const A&)`, beside A.
  template <class A>
  void add(const A& argument) {
    if constexpr (std::is_pointer_v<A>) {
      if (argument != nullptr) list_.push_back({argument, !std::is_const_v<std::remove_pointer_t<A>>});
    } else if constexpr (!std::is_arithmetic_v<A> && !std::is_enum_v<A>) {
      if constexpr (requires { list_arrays(*this, argument); }) {
        list_arrays(*this, argument);
      } else {
        all_known_ = false;
      }
    }
  }

  const std::vector<Operand>& list() const { return list_; }
  bool all_known() const { return all_known_; }

 private:
  std::vector<Operand> list_;
  bool all_known_ = true;
};

/// Who captures a step of this thread.
class Capturer {
 public:
  virtual ~Capturer() = default;

  /// Makes the call.
  virtual void call(const char* name, const Operands& operands, std::unique_ptr<Call> call) = 0;
};

/// Null while no step of this thread is captured, and during the calls of one that is.
extern constinit thread_local Capturer* capturer;

inline bool is_captured() noexcept { return capturer != nullptr; }

template <class F>
std::unique_ptr<Call> as_call(F f) {
  struct CallOf final : Call {
    explicit CallOf(F&& function) : f(std::move(function)) {}
    void run() override { f(); }
    F f;
  };
  return std::make_unique<CallOf>(std::move(f));
}

/// f(), which holds all it needs by value, as a call; for where is_captured().
template <class F>
[[gnu::cold, gnu::noinline]] void capture(const char* name, const Operands& operands, F f) {
  capturer->call(name, operands, as_call(std::move(f)));
}

/// f(), as a call if a step is captured. For loops outside of kernels.
template <class F, class... A>
void as_captured(const char* name, const F& f, const A&... arrays) {
  if (is_captured()) [[unlikely]]
    return capture(name, Operands(arrays...), f);
  f();
}

}  // namespace xgrad::kernels

/// First line of a function that counts as a kernel: the call is handed to who captures it. The operands are
/// in parentheses, and behind them is what calls the function once more.
#define XGRAD_CAPTURED(name, operands, ...)         \
  if (::xgrad::kernels::is_captured()) [[unlikely]] \
  return ::xgrad::kernels::capture(name, ::xgrad::kernels::Operands operands, [=] { __VA_ARGS__; })
