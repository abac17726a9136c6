#pragma once

#include <cstdint>
#include <memory>
#include <mutex>
#include <utility>

#include "../variable.hpp"

namespace xgrad::detail {

/// A form of a value that ops made for themselves, kept until the version of the value changes. Several
/// threads may ask for it.
class KeptForm {
 public:
  /// Null if there is none of this version.
  std::shared_ptr<const void> of(std::uint32_t version) {
    const std::lock_guard lock(mutex_);
    if (version_ != version) form_ = nullptr;
    return form_;
  }
  void keep(std::shared_ptr<const void> form, std::uint32_t version) {
    const std::lock_guard lock(mutex_);
    form_ = std::move(form);
    version_ = version;
  }

 private:
  std::mutex mutex_;
  std::shared_ptr<const void> form_;
  std::uint32_t version_ = 0;
};

/// A variable made by the user, which accumulates its gradient.
template <class T>
struct LeafNode final : Node<T> {
  explicit LeafNode(const Shape& shape) : Node<T>(nullptr, next_order(0), shape) {}

  std::span<const Ref<Node<T>>> inputs() const noexcept override { return {}; }
  void differentiate(Variable<T>*, Needs, Variable<T>*) override {}
  void release() noexcept override {}

  Variable<T> grad;
  KeptForm packed;
};

/// The gradient of a leaf that requires one, or undefined: v.grad() without its checks and its copy.
template <class T>
const Variable<T>& grad_of_leaf(const Variable<T>& leaf) noexcept {
  return static_cast<const LeafNode<T>&>(*Access<T>::node(leaf)).grad;
}

}  // namespace xgrad::detail
