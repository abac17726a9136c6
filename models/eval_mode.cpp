#include "eval_mode.hpp"

#include "detail/for_each_module.hpp"

namespace xgrad {

template <class T>
EvalMode<T>::EvalMode(const Module<T>& module) : module_(module) {
  detail::for_each_module(*module_.state_, [this](const auto& state) { modes_.push_back(state.training); });
  module_.eval();
}

template <class T>
EvalMode<T>::~EvalMode() {
  auto mode = modes_.begin();
  detail::for_each_module(*module_.state_, [&](auto& state) { state.training = *mode++; });
}

template class EvalMode<float>;
template class EvalMode<double>;

}  // namespace xgrad
