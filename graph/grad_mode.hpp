#pragma once

#include "../base/detail/scoped_value.hpp"

namespace xgrad {
namespace detail {

extern constinit thread_local bool recording;

}  // namespace detail

/// True if operations on this thread record a graph (the default).
inline bool grad_enabled() noexcept { return detail::recording; }

/// Disables recording on this thread for the lifetime of the object: `NoGrad guard;` (torch.no_grad).
class [[nodiscard]] NoGrad : detail::ScopedValue<bool> {
 public:
  [[nodiscard]] NoGrad() noexcept : ScopedValue(detail::recording, false) {}
};

/// Enables recording on this thread for the lifetime of the object, inside a NoGrad (torch.enable_grad).
class [[nodiscard]] EnableGrad : detail::ScopedValue<bool> {
 public:
  [[nodiscard]] EnableGrad() noexcept : ScopedValue(detail::recording, true) {}
};

}  // namespace xgrad
