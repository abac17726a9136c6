#pragma once

namespace xgrad::detail {

/// Sets a thread-local variable and restores its old value at the end, also after an exception.
template <class V>
class ScopedValue {
 public:
  ScopedValue(V& variable, V value) noexcept : variable_(variable), before_(variable) { variable_ = value; }
  ~ScopedValue() { variable_ = before_; }
  ScopedValue(const ScopedValue&) = delete;
  ScopedValue& operator=(const ScopedValue&) = delete;

  const V& before() const noexcept { return before_; }

 private:
  V& variable_;
  V before_;
};

}  // namespace xgrad::detail
