#pragma once

#include <type_traits>
#include <utility>

#include "../graph/record.hpp"

namespace xgrad {
namespace ops {

inline constexpr Op on_gradient("on_gradient", {"x"});

}  // namespace ops

/// y = x. `hook` is called with the gradient of y before it propagates to x: to print it, to gather
/// statistics, or to replace it by the returned gradient of the same shape; a hook that returns nothing
/// leaves it unchanged. Under create_graph, the ops of the hook are recorded.
///
///   h = on_gradient(h, [](const Variable<>& dy) { return clamp(dy, -1, 1); });
///
/// https://pytorch.org/docs/stable/generated/torch.Tensor.register_hook.html
template <class T, class F>
Variable<T> on_gradient(const Variable<T>& x, F hook) {
  return record<T>(ops::on_gradient, x.detach(), Inputs(x), Saved(),
                   [hook = std::move(hook)](Variable<T> dy, Needs) -> Grads<T, 1> {
                     if constexpr (std::is_void_v<std::invoke_result_t<const F&, const Variable<T>&>>) {
                       hook(std::as_const(dy));
                       return {std::move(dy)};
                     } else {
                       return {hook(std::as_const(dy))};
                     }
                   });
}

}  // namespace xgrad
