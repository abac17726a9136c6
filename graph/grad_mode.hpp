#pragma once

#include "../base/detail/scoped_value.hpp"

namespace xgrad {
namespace detail {

extern constinit thread_local bool recording;

}  // namespace detail

/// True if operations on this thread record a graph (the default).
inline bool grad_enabled() noexcept { return detail::recording; }

/// While one lives, operations on this thread record nothing: `NoGrad guard;` (torch.no_grad).
class [[nodiscard]] NoGrad : detail::ScopedValue<bool> {
 public:
  NoGrad() noexcept : ScopedValue(detail::recording, false) {}
};

/// While one lives, operations on this thread record again, inside of a NoGrad (torch.enable_grad).
class [[nodiscard]] EnableGrad : detail::ScopedValue<bool> {
 public:
  EnableGrad() noexcept : ScopedValue(detail::recording, true) {}
};

}  // namespace xgrad
