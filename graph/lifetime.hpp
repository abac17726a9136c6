#pragma once

#include <memory>

namespace xgrad::detail {

/// A member that tells others whether the object around it still lives where they found it.
class Lifetime {
 public:
  Lifetime() = default;
  Lifetime(const Lifetime&) noexcept {}  // another place
  Lifetime& operator=(const Lifetime&) noexcept { return *this; }
  ~Lifetime() = default;

  /// Expires with the object. Not to be called by two threads at once.
  std::weak_ptr<const void> watched() const {
    if (alive_ == nullptr) alive_ = std::make_shared<char>();
    return alive_;
  }

 private:
  mutable std::shared_ptr<const void> alive_;
};

}  // namespace xgrad::detail
