#pragma once

namespace xgrad {
namespace detail {

extern constinit thread_local bool recording;

/// Sets the calling thread's grad mode and puts the old one back, also after an exception.
class GradMode {
 public:
  explicit GradMode(bool enabled) noexcept : before_(recording) { recording = enabled; }
  ~GradMode() { recording = before_; }
  GradMode(const GradMode&) = delete;
  GradMode& operator=(const GradMode&) = delete;

 private:
  bool before_;
};

}  // namespace detail

/// True if operations on this thread record a graph (the default).
inline bool grad_enabled() noexcept { return detail::recording; }

/// While one lives, operations on this thread record nothing: `NoGrad guard;` (torch.no_grad).
class [[nodiscard]] NoGrad : detail::GradMode {
 public:
  NoGrad() noexcept : GradMode(false) {}
};

/// While one lives, operations on this thread record again, inside of a NoGrad (torch.enable_grad).
class [[nodiscard]] EnableGrad : detail::GradMode {
 public:
  EnableGrad() noexcept : GradMode(true) {}
};

}  // namespace xgrad
