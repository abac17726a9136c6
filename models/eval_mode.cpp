#include "eval_mode.hpp"

namespace xgrad {
namespace {

/// Calls visit(state) for all modules below one, each before its children.
template <class T, class Visit>
void for_each_below(const detail::ModuleState<T>& state, const Visit& visit) {
  for (const auto& [name, child] : state.children) {
    visit(*child);
    for_each_below(*child, visit);
  }
}

}  // namespace

template <class T>
EvalMode<T>::EvalMode(const Module<T>& module) : module_(module) {
  modes_.push_back(module_.training());
  for_each_below(module_.state(), [this](const auto& state) { modes_.push_back(state.training); });
  module_.eval();
}

template <class T>
EvalMode<T>::~EvalMode() {
  module_.train(modes_[0]);
  std::size_t i = 1;
  for_each_below(module_.state(), [&](auto& state) { state.training = modes_[i++]; });
}

template class EvalMode<float>;
template class EvalMode<double>;

}  // namespace xgrad
