#pragma once

namespace xgrad::detail {

/// Sets a flag of the calling thread and puts the old value back, also after an exception.
class ScopedFlag {
 public:
  ScopedFlag(bool& flag, bool value) noexcept : flag_(flag), before_(flag) { flag_ = value; }
  ~ScopedFlag() { flag_ = before_; }
  ScopedFlag(const ScopedFlag&) = delete;
  ScopedFlag& operator=(const ScopedFlag&) = delete;

 private:
  bool& flag_;
  bool before_;
};

}  // namespace xgrad::detail
