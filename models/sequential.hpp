#pragma once

#include <concepts>
#include <functional>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include "../graph/detail/returns_variable.hpp"
#include "module.hpp"

namespace xgrad {

/// Modules one behind the other, the children `0`, `1`, ...: each takes what the one before it returns. A
/// module of any kind whose operator() takes one variable and returns one; others do not compile.
/// Sequential<float>{Linear<float>(2, 8), Linear<float>(8, 1)} draws the weights in this order; the compiler
/// may make arguments in parentheses in another. Made from one Sequential alone, it is a copy of that.
/// https://pytorch.org/docs/stable/generated/torch.nn.Sequential.html
template <class T>
class Sequential : public Module<T> {
 public:
  template <std::derived_from<Module<T>>... M>
  requires(std::is_invocable_r_v<Variable<T>, const M&, const Variable<T>&>&&...) explicit Sequential(
      M... modules)
      : Module<T>("Sequential") {
    (add(std::move(modules)), ...);
  }

  Variable<T> operator()(const Variable<T>& x) const {
    const auto scope = this->scope();
    Variable<T> y = x;
    for (const auto& module : modules_) y = module(y);
    return y;
  }

 private:
  template <class M>
  void add(M module) {
    detail::check_returns_variable<T, const M&, const Variable<T>&>();
    modules_.push_back(this->child(std::to_string(modules_.size()), std::move(module)));
  }

  std::vector<std::function<Variable<T>(const Variable<T>&)>> modules_;
};

}  // namespace xgrad
