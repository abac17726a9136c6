#pragma once

#include <type_traits>
#include <utility>

#include "../graph/detail/returns_variable.hpp"
#include "../graph/record.hpp"

namespace xgrad {
namespace ops {

inline constexpr Op on_gradient("on_gradient", {"x"});

}  // namespace ops

/// y = x. `hook` is called with the gradient of y before it propagates to x: to print it, to gather
/// statistics, or to replace it by the returned gradient of the same shape; a hook that returns nothing
/// leaves it unchanged. Under create_graph, the ops of the hook are recorded. Throws GraphError, in the
/// backward pass, if the hook assigns to its argument, which other gradients may share.
///
///   h = on_gradient(h, [](const Variable<>& dy) { return clamp(dy, -1, 1); });
///
/// https://pytorch.org/docs/stable/generated/torch.Tensor.register_hook.html
template <class T, class F>
[[nodiscard("the hook belongs to the returned variable")]] Variable<T> on_gradient(const Variable<T>& x,
                                                                                   F hook) {
  return record<T>(ops::on_gradient, x.detach(), Inputs(x), Saved(),
                   [hook = std::move(hook)](Variable<T> dy, Needs) -> Grads<T, 1> {
                     const detail::SavedValue<T> before(detail::Access<T>::value(dy));
                     if constexpr (std::is_void_v<std::invoke_result_t<const F&, const Variable<T>&>>) {
                       hook(std::as_const(dy));
                     } else {
                       detail::check_returns_variable<T, const F&, const Variable<T>&>();
                       dy = hook(std::as_const(dy));
                     }
                     if (before.value->version != before.version)
                       detail::fail<GraphError>(
                           "on_gradient: the hook must not change its argument, but return a gradient");
                     return {std::move(dy)};
                   });
}

}  // namespace xgrad
