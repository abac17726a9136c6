#pragma once

#include <concepts>
#include <functional>
#include <type_traits>
#include <utility>

#include "../variable.hpp"

namespace xgrad::detail {

/// Refuses an F that, called with A..., returns anything but a Variable<T>: a number, an array or an xtensor
/// expression would convert to a constant, of derivative 0.
template <class T, class F, class... A>
constexpr void check_returns_variable() {
  static_assert(std::is_invocable_v<F, A...>, "f must take Variables: one, or a std::vector of them as x is");
  if constexpr (std::is_invocable_v<F, A...>) {
    static_assert(
        std::same_as<std::remove_cvref_t<std::invoke_result_t<F, A...>>, Variable<T>>,
        "f must return a Variable that it computed by ops on its arguments: a number, an array or an "
        "xtensor expression has no graph, and its derivative would be 0");
  }
}

/// A std::function whose callee returns a Variable<T>, not what converts to one.
template <class T, class... A>
class VariableFunction : public std::function<Variable<T>(A...)> {
  using Base = std::function<Variable<T>(A...)>;

 public:
  VariableFunction() = default;
  VariableFunction(Base f) : Base(std::move(f)) {}

  template <class F>
  requires(!std::derived_from<std::remove_cvref_t<F>, Base>) &&
      std::is_invocable_r_v<Variable<T>, std::remove_cvref_t<F>&, A...> VariableFunction(F&& f)
      : Base(std::forward<F>(f)) {
    check_returns_variable<T, std::remove_cvref_t<F>&, A...>();
  }
};

}  // namespace xgrad::detail
